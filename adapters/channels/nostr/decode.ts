import mime from 'mime'
import { npubEncode } from 'nostr-tools/nip19'
import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import type { Identity } from './identity.ts'
import { KIND, tagOf, tagsOf } from './wire.ts'
import type { Rumor } from './wire.ts'

/** People of a group beside the bot. Their keys are the id of the chat, which may have 512 characters. */
export const MAX_OTHERS = 7
const MAX_ADDRESS = 2000

export interface DecodeContext {
  readonly identity: Pick<Identity, 'publicKey' | 'npub'>
  /** Whether the bot wrote the message with this id. */
  isOwn(id: string): boolean
}

/** The message of a person; `undefined` for those of the bot, other kinds, and groups that are too large. */
export function decodeMessage(rumor: Rumor, { identity, isOwn }: DecodeContext): InboundMessage | undefined {
  const { id, pubkey, kind, created_at: time } = rumor
  const { publicKey, npub } = identity
  const isFile = kind === KIND.file
  if (pubkey === publicKey || (kind !== KIND.message && kind !== KIND.legacyMessage && !isFile)) return undefined
  const isLegacy = kind === KIND.legacyMessage
  const others = isLegacy ? [pubkey] : othersOf(rumor, publicKey)
  if (others.length > MAX_OTHERS) return undefined
  const attachments = isFile ? fileOf(rumor) : []
  const written = isFile && attachments.length > 0 ? '' : rumor.content.trim()
  const text = withoutMention(written, npub)
  if (text === '' && attachments.length === 0) return undefined
  const replyTo = parentOf(rumor)
  const isDirect = others.length === 1
  const handle = npubEncode(pubkey)
  return omitUndefined({
    id,
    chat: omitUndefined({
      id: others.join(','),
      kind: isDirect ? ('direct' as const) : ('group' as const),
      title: tagOf(rumor, 'subject')?.slice(0, 200) || undefined,
    }),
    // Names in profiles are chosen freely: whoever reads one could take it for that of somebody else.
    sender: { id: pubkey, name: `${handle.slice(0, 12)}…${handle.slice(-6)}`, handle },
    text,
    attachments,
    mentionsBot: isDirect || text !== written || (replyTo !== undefined && isOwn(replyTo)),
    replyTo,
    sentAt: isoTime(time * 1000),
    replyContext: { protocol: isLegacy ? 'nip04' : 'nip17' },
  })
}

/** Everybody in the chat but the bot, in an order that does not depend on who writes. */
function othersOf(rumor: Rumor, publicKey: string): readonly string[] {
  const receivers = tagsOf(rumor, 'p').filter((key) => /^[0-9a-f]{64}$/.test(key))
  return [...new Set([rumor.pubkey, ...receivers])].filter((key) => key !== publicKey).toSorted()
}

function parentOf({ tags }: Rumor): string | undefined {
  const parents = tags.filter(([name]) => name === 'e')
  const id = (parents.find((tag) => tag[3] === 'reply') ?? parents[0])?.[1]
  return id !== undefined && /^[0-9a-f]{64}$/.test(id) ? id : undefined
}

/** Apps write a mention as NIP-21 says: `nostr:npub1…`. */
function withoutMention(written: string, npub: string): string {
  const mention = `nostr:${npub}`
  if (!written.includes(mention)) return written
  return written
    .replaceAll(mention, '')
    .trim()
    .replace(/^[,:]\s*/, '')
}

/** A file is somewhere on the web, encrypted with a key of its own. */
function fileOf(rumor: Rumor): readonly InboundAttachment[] {
  const { content: url } = rumor
  const key = tagOf(rumor, 'decryption-key') ?? ''
  const nonce = tagOf(rumor, 'decryption-nonce') ?? ''
  const isReadable =
    tagOf(rumor, 'encryption-algorithm') === 'aes-gcm' &&
    /^(?:[0-9a-f]{32}|[0-9a-f]{64})$/i.test(key) &&
    /^(?:[0-9a-f]{2}){8,32}$/i.test(nonce)
  if (!isReadable || url.length > MAX_ADDRESS || !/^https?:\/\//i.test(url)) return []
  const type = /^[\w.+-]{1,60}\/[\w.+-]{1,60}$/.exec(tagOf(rumor, 'file-type') ?? '')?.[0] ?? 'application/octet-stream'
  const kind = attachmentKind(type)
  const size = Number(tagOf(rumor, 'size') ?? '')
  const extension = mime.getExtension(type)
  return [
    omitUndefined({
      kind,
      name: extension === null ? kind : `${kind}.${extension}`,
      mime: type,
      size: Number.isSafeInteger(size) && size > 0 ? size : undefined,
      reference: { url, key, nonce },
    }),
  ]
}
