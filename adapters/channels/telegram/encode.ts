import { omitUndefined } from 'svc/sdk'
import type { Destination, OutboundAttachment, OutboundMessage } from 'svc/channels'

const MAX_CAPTION = 1024
/** Bytes of `callback_data`. */
const MAX_BUTTON_VALUE = 64

/** Where a message goes, as parameters of the Bot API. */
export function encodeDestination({ chatId, threadId }: Destination) {
  return omitUndefined({ chat_id: chatId, message_thread_id: threadId === undefined ? undefined : Number(threadId) })
}

/** The parameters that every kind of message shares. A reply to a message that is gone becomes a plain message. */
export function encodeReply({ replyTo }: OutboundMessage) {
  const id = replyTo === undefined ? undefined : localId(replyTo)
  return omitUndefined({
    reply_parameters: id === undefined ? undefined : { message_id: id, allow_sending_without_reply: true },
  })
}

/** The text in HTML. Previews of links make a short answer a long one. */
export function encodeText(message: OutboundMessage) {
  return { text: message.text, parse_mode: 'HTML', link_preview_options: { is_disabled: true } }
}
/** The text without markup, for one that Telegram cannot parse. */
export function encodePlainText(message: OutboundMessage) {
  return { text: message.plainText, link_preview_options: { is_disabled: true } }
}

/** The buttons under a message, one in each row. */
export function encodeButtons({ buttons }: OutboundMessage) {
  if (!buttons || buttons.length === 0) return {}
  const fitting = buttons.filter(({ value }) => Buffer.byteLength(value) <= MAX_BUTTON_VALUE)
  return {
    reply_markup: { inline_keyboard: fitting.map(({ label, value }) => [{ text: label, callback_data: value }]) },
  }
}

/** Whether the text fits under a file. It may still be refused as HTML, so what counts is the longer form. */
export function fitsCaption({ text, attachments }: OutboundMessage): boolean {
  return attachments.length === 1 && text.length <= MAX_CAPTION
}

/** The method that sends a file, and the name of its field. */
export function methodFor({ kind, mime }: OutboundAttachment): readonly [method: string, field: string] {
  if (kind === 'image' && /^image\/(jpeg|png|webp)$/.test(mime)) return ['sendPhoto', 'photo']
  if (kind === 'video' && mime === 'video/mp4') return ['sendVideo', 'video']
  if (kind === 'audio' && mime === 'audio/ogg') return ['sendVoice', 'voice']
  if (kind === 'audio' && /^audio\/(mpeg|mp4|x-m4a)$/.test(mime)) return ['sendAudio', 'audio']
  return ['sendDocument', 'document']
}

/** The multipart body that sends a file. */
export async function encodeFile(
  attachment: OutboundAttachment,
  field: string,
  parameters: Readonly<Record<string, unknown>>,
): Promise<FormData> {
  const form = new FormData()
  for (const [name, value] of Object.entries(parameters))
    form.set(name, typeof value === 'object' ? JSON.stringify(value) : String(value))
  const bytes = new Uint8Array(await attachment.bytes())
  form.set(field, new Blob([bytes], { type: attachment.mime }), attachment.name)
  return form
}

/** The number of a message in its chat; `undefined` for an id of another kind, such as that of a pressed button. */
export function localId(id: string): number | undefined {
  const match = /^-?\d+:(\d+)$/.exec(id)
  return match ? Number(match[1]) : undefined
}
