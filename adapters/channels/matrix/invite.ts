import type { MatrixConfig } from './config.ts'

/** Whether the bot goes to a room it is invited to. */
export function isInviteAllowed(
  { auto_join: policy, join_invites_from: entries }: Pick<MatrixConfig, 'auto_join' | 'join_invites_from'>,
  room: string,
  sender: string,
): boolean {
  if (policy === 'always') return true
  if (policy === 'never') return false
  // An id is @name:server, and a server name may have a port after another colon.
  const server = sender.slice(sender.indexOf(':'))
  return entries.some((entry) => entry === room || entry === sender || (sender.includes(':') && entry === server))
}
