import { getEventHash } from 'nostr-tools/pure'
import { UpstreamFailure } from 'svc/sdk'
import type { OutboundMessage } from 'svc/channels'
import { MAX_OTHERS } from './decode.ts'
import { publicKeyOf } from './identity.ts'
import { KIND } from './wire.ts'
import type { Rumor } from './wire.ts'

/** Everybody who gets a message for this chat. */
export function recipientsOf(chatId: string): readonly string[] {
  const keys = chatId.split(',', MAX_OTHERS + 1).map(publicKeyOf)
  const known = keys.filter((key) => key !== undefined)
  if (known.length === keys.length && known.length <= MAX_OTHERS) return known
  throw new UpstreamFailure('nostr', 'nostr: a chat is a public key (npub1… or hexadecimal), or several with commas', {
    reason: 'invalid_request',
    retry: 'never',
  })
}

/** The message as it is before it is encrypted. With the same time it has the same id. */
export function encodeMessage(
  { text, replyTo }: OutboundMessage,
  { author, to, createdAt, isLegacy }: MessageFacts,
): Rumor {
  const tags = to.map((key) => ['p', key])
  if (replyTo !== undefined) tags.push(isLegacy ? ['e', replyTo] : ['e', replyTo, '', 'reply'])
  const kind = isLegacy ? KIND.legacyMessage : KIND.message
  const rumor = { pubkey: author, created_at: createdAt, kind, tags, content: text }
  return { ...rumor, id: getEventHash(rumor) }
}
export interface MessageFacts {
  readonly author: string
  readonly to: readonly string[]
  /** Seconds. */
  readonly createdAt: number
  readonly isLegacy: boolean
}
