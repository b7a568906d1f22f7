import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import { isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { Embed, Post } from './wire.ts'
import type { Account, Facet, Notification, ReplyRef } from './wire.ts'

const MENTION = 'app.bsky.richtext.facet#mention'
const LINK = 'app.bsky.richtext.facet#link'
/** Shown by Bluesky for handles whose domain does not confirm them: several people have it. */
const INVALID_HANDLE = 'handle.invalid'
const MAX_FACETS = 200
const MAX_LINK_CHARS = 2000

/** The post that a notification is about; `undefined` for what is no post, and for those of the account itself. */
export function decodeNotification(notification: Notification, account: Account): InboundMessage | undefined {
  const { uri, cid, author, reason, record, indexedAt } = notification
  const parsed = v.safeParse(Post, record)
  if (!parsed.success || author.did === account.did || author.did === '') return undefined
  const post = parsed.output
  const parent = { uri, cid }
  const root = post.reply?.root ?? parent
  const replyTo = post.reply?.parent.uri
  // Bluesky also tells of replies to replies to the account.
  const mentionsBot = reason === 'mention' || isOf(replyTo, account) || post.facets.some(isMentionOf(account))
  const text = textOf(post, account)
  const attachments = imagesOf(post, author.did)
  if (text === '' && attachments.length === 0 && !mentionsBot) return undefined
  const hasHandle = author.handle !== '' && author.handle !== INVALID_HANDLE
  return omitUndefined({
    id: uri,
    // Everything that the account is told of is one chat, and each thread of posts is one of its threads.
    chat: { id: account.did, kind: 'group' as const, title: `@${account.handle}` },
    threadId: root.uri,
    sender: omitUndefined({
      id: author.did,
      name: author.displayName || (hasHandle ? author.handle : author.did),
      handle: hasHandle ? author.handle : undefined,
    }),
    text,
    attachments,
    mentionsBot,
    replyTo,
    sentAt: isoTime(Date.parse(indexedAt)),
    replyContext: { root, parent } satisfies ReplyRef,
  })
}

const isOf = (uri: string | undefined, { did }: Account): boolean => uri?.startsWith(`at://${did}/`) === true

const isMentionOf =
  ({ did }: Account) =>
  ({ features }: Facet): boolean =>
    features.some((feature) => feature.$type === MENTION && feature.did === did)

/** Without mentions of the account, and with whole addresses: apps shorten those that are shown. */
function textOf({ text, facets }: Post, account: Account): string {
  const bytes = Buffer.from(text)
  const pieces: Buffer[] = []
  let end = bytes.length
  const lastFirst = facets.slice(0, MAX_FACETS).toSorted((one, other) => other.index.byteStart - one.index.byteStart)
  for (const facet of lastFirst) {
    const { byteStart, byteEnd } = facet.index
    const replacement = isMentionOf(account)(facet) ? '' : linkOf(facet)
    if (replacement === undefined || byteStart >= byteEnd || byteEnd > end) continue
    pieces.push(bytes.subarray(byteEnd, end), Buffer.from(replacement))
    end = byteStart
  }
  if (pieces.length === 0) return text.trim()
  const whole = Buffer.concat([bytes.subarray(0, end), ...pieces.toReversed()])
    .toString()
    .trim()
  // What is addressed to the account begins with its name and often a comma.
  return facets.some(isMentionOf(account)) ? whole.replace(/^[,:]\s*/, '') : whole
}

function imagesOf({ embed }: Post, did: string): readonly InboundAttachment[] {
  const parsed = v.safeParse(Embed, embed)
  if (!parsed.success) return []
  const { images } = 'images' in parsed.output ? parsed.output : parsed.output.media
  return images.map(({ image }, index) => ({
    kind: 'image',
    name: `picture-${index + 1}.jpg`,
    mime: 'image/jpeg',
    reference: { did, cid: image.ref.$link },
  }))
}

function linkOf({ features }: Facet): string | undefined {
  const uri = features.find(({ $type }) => $type === LINK)?.uri
  return uri !== undefined && /^https?:\/\/\S+$/.test(uri) && uri.length <= MAX_LINK_CHARS ? uri : undefined
}
