import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { encodeRef, GROUP, toQuote } from './encode.ts'
import type { Attachment, Data, Envelope, Mention } from './wire.ts'

const MAX_MENTIONS = 100
const MAX_FILES = 32
const MAX_NAME = 255

/** The message of a person; `undefined` for those of the bot, receipts, reactions and the like. */
export function decodeEnvelope(envelope: Envelope, number: string): InboundMessage | undefined {
  const { editMessage, sourceNumber, serverReceivedTimestamp } = envelope
  const data = editMessage?.dataMessage ?? envelope.dataMessage
  const sender = senderOf(envelope)
  if (!data || sender.id === '' || sourceNumber === number) return undefined
  const { text, isMention } = readText(data, number)
  const chat = chatOf(data, sender.id)
  const attachments = (data.attachments ?? []).slice(0, MAX_FILES).map((file) => toAttachment(file, chat.id))
  if (text === '' && attachments.length === 0 && !isMention) return undefined
  return omitUndefined({
    id: encodeRef({ timestamp: editMessage?.targetSentTimestamp ?? data.timestamp, author: sender.id }),
    chat,
    sender,
    text,
    attachments,
    mentionsBot: chat.kind === 'direct' || isMention || data.quote?.authorNumber === number,
    replyTo: quotedBy(data, number),
    sentAt: isoTime(serverReceivedTimestamp ?? data.timestamp),
    isEdit: editMessage ? true : undefined,
    replyContext: { quote: toQuote(text) },
  })
}

function senderOf({ sourceUuid, sourceNumber, sourceName }: Envelope): InboundMessage['sender'] {
  const id = sourceUuid || sourceNumber || ''
  return omitUndefined({ id, name: sourceName || sourceNumber || id, handle: sourceNumber || undefined })
}

function chatOf({ groupInfo }: Data, sender: string): InboundMessage['chat'] {
  if (!groupInfo) return { id: sender, kind: 'direct' }
  const title = groupInfo.groupName ?? undefined
  return omitUndefined({ id: `${GROUP}${groupInfo.groupId}`, kind: 'group' as const, title })
}

/** The message that is answered. Its author is the number for the bot, and as in other ids for everybody else. */
function quotedBy({ quote }: Data, number: string): string | undefined {
  if (!quote) return undefined
  const { id: timestamp, authorNumber, authorUuid } = quote
  const author = authorNumber === number ? number : authorUuid || authorNumber
  return author ? encodeRef({ timestamp, author }) : undefined
}

/** In the text a mention is one sign. Those of the bot are left out, others become names. */
function readText(data: Data, number: string): { readonly text: string; readonly isMention: boolean } {
  const mentions = (data.mentions ?? []).slice(0, MAX_MENTIONS).toSorted((one, other) => other.start - one.start)
  let text = data.message ?? ''
  for (const mention of mentions) {
    const { start, length } = mention
    text = text.slice(0, start) + (isBot(mention, number) ? '' : `@${nameOf(mention)}`) + text.slice(start + length)
  }
  const isMention = mentions.some((mention) => isBot(mention, number))
  return { text: isMention ? text.trim().replace(/^[,:]\s*/, '') : text, isMention }
}
const isBot = (mention: Mention, number: string): boolean => mention.number === number
const nameOf = ({ name, number, uuid }: Mention): string => (name || number || uuid || '').slice(0, MAX_NAME)

function toAttachment({ id, contentType, filename, size }: Attachment, chatId: string): InboundAttachment {
  const mime = contentType || 'application/octet-stream'
  return omitUndefined({
    kind: attachmentKind(mime),
    name: (filename || id).slice(0, MAX_NAME),
    mime: mime.slice(0, MAX_NAME),
    size: size ?? undefined,
    reference: { id: id.slice(0, MAX_NAME), chatId: chatId.slice(0, MAX_NAME) },
  })
}
