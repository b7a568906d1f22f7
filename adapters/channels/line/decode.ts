import mime from 'mime'
import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import type { Event, Message, ReplyContext, Source } from './wire.ts'

/** LINE takes a reply for a minute after the event. */
const REPLY_MS = 50_000
/** LINE tells names and types of files, but not of pictures and recordings. */
const MEDIA: Readonly<Record<string, readonly [name: string, mime: string]>> = {
  image: ['image.jpg', 'image/jpeg'],
  video: ['video.mp4', 'video/mp4'],
  audio: ['audio.m4a', 'audio/mp4'],
}
/** Such as 1,000 members that one message mentions. */
const MAX_MENTIONS = 100

export interface DecodeContext {
  readonly now: number
  /** Whether the bot wrote the message with this id. */
  readonly isOwn: (id: string) => boolean
}

/** The message of a person; `undefined` for other events, and for messages without a content. */
export function decodeEvent(event: Event, context: DecodeContext): InboundMessage | undefined {
  const { source, message, postback } = event
  const chat = source ? chatOf(source) : undefined
  if (!source || !chat) return undefined
  const place = { chat, sender: senderOf(source), sentAt: isoTime(event.timestamp) }
  if (event.type === 'postback' && postback)
    return {
      ...place,
      id: event.webhookEventId,
      text: postback.data,
      attachments: [],
      mentionsBot: true,
      replyContext: replyContextOf(event, context),
    }
  if (event.type !== 'message' || !message) return undefined
  const text = textOf(message)
  const attachments = attachmentsOf(message)
  const mentionsBot = chat.kind === 'direct' || isForBot(message, context)
  if (text === '' && attachments.length === 0 && !mentionsBot) return undefined
  return omitUndefined({
    ...place,
    id: message.id,
    text,
    attachments,
    mentionsBot,
    replyTo: message.quotedMessageId ?? undefined,
    replyContext: replyContextOf(event, context),
  })
}

function chatOf({ userId, groupId, roomId }: Source): InboundMessage['chat'] | undefined {
  const group = groupId ?? roomId
  if (group != null) return { id: group, kind: 'group' }
  return userId == null ? undefined : { id: userId, kind: 'direct' }
}

/** The name is looked up later. */
function senderOf({ userId }: Source): InboundMessage['sender'] {
  if (userId == null) return { id: 'unknown', name: 'unknown', isUnverified: true }
  return { id: userId, name: userId }
}

function isForBot({ mention, quotedMessageId }: Message, { isOwn }: DecodeContext): boolean {
  return (
    (mention?.mentionees ?? []).some(({ isSelf }) => isSelf === true) ||
    (quotedMessageId != null && isOwn(quotedMessageId))
  )
}

function textOf(message: Message): string {
  const { type, title, latitude, longitude, keywords, contentProvider } = message
  if (type === 'text') return withoutMention(message)
  if (type === 'sticker') return `[sticker: ${message.text ?? keywords?.slice(0, 3).join(', ') ?? ''}]`
  if (type === 'location') return [title, `Location: ${latitude}, ${longitude}`].filter(Boolean).join('\n')
  // What is not kept by LINE is not read: anybody can run that server.
  return contentProvider?.originalContentUrl ?? ''
}

/** What is addressed to the bot begins with its name and often a comma. */
function withoutMention({ text, mention }: Message): string {
  const own = (mention?.mentionees ?? []).filter(({ isSelf }) => isSelf === true).slice(0, MAX_MENTIONS)
  // From the end, so that the positions of those before hold.
  const rest = own
    .toSorted((one, other) => other.index - one.index)
    .reduce((left, { index, length }) => left.slice(0, index) + left.slice(index + length), text ?? '')
    .trim()
  return own.length === 0 ? rest : rest.replace(/^[,:]\s*/, '')
}

function attachmentsOf({ id, type, fileName, fileSize, contentProvider }: Message): readonly InboundAttachment[] {
  if (contentProvider != null && contentProvider.type !== 'line') return []
  if (type === 'file') {
    const name = fileName || 'file'
    const kind = mime.getType(name) ?? 'application/octet-stream'
    return [
      omitUndefined({
        kind: attachmentKind(kind),
        name,
        mime: kind,
        size: fileSize ?? undefined,
        reference: { messageId: id },
      }),
    ]
  }
  const media = Object.hasOwn(MEDIA, type) ? MEDIA[type] : undefined
  if (!media) return []
  const [name, kind] = media
  return [{ kind: attachmentKind(kind), name, mime: kind, reference: { messageId: id } }]
}

function replyContextOf({ replyToken, message, webhookEventId }: Event, { now }: DecodeContext): ReplyContext {
  return omitUndefined({
    messageId: message?.id ?? webhookEventId,
    quoteToken: message?.quoteToken ?? undefined,
    replyToken: replyToken ?? undefined,
    replyBy: now + REPLY_MS,
  })
}
