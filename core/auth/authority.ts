import { Refusal } from '../errors/error.ts'
import type { Principal } from './principal.ts'

/**
 * What a request leaves behind. Who may make it follows from that, so a route declares this and no list of who may do
 * what.
 *
 * - `read`: nothing.
 * - `conversation`: what ends, and decides nothing that comes later.
 * - `own`: the credential of the caller or what is kept for them, and nobody else's.
 * - `lasting`: what still holds when the caller's credential is gone, or is gone itself: where data and keys go, who
 * may do
 *   what from then on, settings, data deleted for good, the end of the daemon; and who else gets in.
 */
export const effects = ['read', 'conversation', 'own', 'lasting'] as const
/** What a request leaves behind, of `effects`; who may make it follows from that. */
export type Effect = (typeof effects)[number]

/**
 * Throws `forbidden` when this caller must not cause such an effect. A credential beside the key can be taken away by
 * the owner; what takes more than taking it away to undo is for the owner's key.
 */
export function checkAuthority(principal: Principal, effect: Effect): void {
  if (effect !== 'lasting' || !('id' in principal)) return
  throw new Refusal('forbidden', `${principal.title ?? 'This credential'} cannot do this: use the API key`)
}
