import type { ChannelAdapter, InboundMessage } from 'svc/channels'
import type { Account } from '../accounts/account.ts'
import type { Paired } from './store.ts'

/** `anybody`: admitted by `*` only, so nobody vouches for them. */
export type Standing = 'operator' | 'user' | 'anybody' | 'nobody'
type Sender = InboundMessage['sender']

function matches(adapter: Pick<ChannelAdapter, 'matchesSender'>, entry: string, sender: Sender): boolean {
  if (entry === '*') return false
  if (adapter.matchesSender) return adapter.matchesSender(entry, sender)
  const name = entry.toLowerCase()
  return name === sender.id.toLowerCase() || name === sender.handle?.toLowerCase()
}

/** What a person may do with an account. A sender whom the platform did not verify never is an operator. */
export function standingOf(
  { settings }: Pick<Account, 'settings'>,
  adapter: Pick<ChannelAdapter, 'matchesSender'>,
  sender: Sender,
  paired: Paired | undefined,
): Standing {
  const isIn = (list: readonly string[]): boolean => list.some((entry) => matches(adapter, entry, sender))
  const isOperator = paired?.role === 'operator' || isIn(settings.operators)
  if (isOperator && sender.isUnverified !== true) return 'operator'
  if (isOperator || paired || isIn(settings.allowed_users)) return 'user'
  return settings.allowed_users.includes('*') ? 'anybody' : 'nobody'
}
