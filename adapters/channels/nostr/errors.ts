import { UpstreamFailure } from 'svc/sdk'
import type { UpstreamReason } from 'svc/sdk'

/** The words before the colon of `OK` and `CLOSED`, as NIP-01 and NIP-42 list them. */
const MEANINGS: Readonly<Record<string, UpstreamReason>> = {
  'auth-required': 'auth',
  restricted: 'auth',
  blocked: 'invalid_request',
  invalid: 'invalid_request',
  pow: 'invalid_request',
  unsupported: 'invalid_request',
  'rate-limited': 'rate_limit',
  error: 'server_error',
}

/**
 * What a relay means by a refusal. A relay that a recipient names says nothing about the key of the bot: anybody may
 * run one.
 */
export function toFailure(host: string, words: string, isOwnRelay: boolean): UpstreamFailure {
  const prefix = prefixOf(words)
  const meaning = (Object.hasOwn(MEANINGS, prefix) ? MEANINGS[prefix] : undefined) ?? 'server_error'
  const reason = meaning === 'auth' && !isOwnRelay ? 'invalid_request' : meaning
  const retry = reason === 'rate_limit' || reason === 'server_error' ? 'later' : 'never'
  return new UpstreamFailure('nostr', `the relay ${host} refused: ${words.slice(0, 300)}`, { reason, retry })
}

/** Whether the relay wants to know who asks. Some say `restricted` to a client that was not asked yet. */
export function wantsAuth(words: string): boolean {
  return ['auth-required', 'restricted'].includes(prefixOf(words))
}

/** Some relays refuse what they have. */
export function isDuplicate(words: string): boolean {
  return prefixOf(words) === 'duplicate'
}

function prefixOf(words: string): string {
  return words.slice(0, 32).split(':', 1)[0]?.trim() ?? ''
}
