import { omitUndefined } from 'svc/sdk'
import type { OutboundAttachment, OutboundMessage } from 'svc/channels'

const MAX_BUTTONS = 3
const MAX_ROWS = 10
const MAX_CAPTION = 1024
const MAX_BODY_WITH_BUTTONS = 1024

/** The parameters that every message has. */
function envelope({ to, replyTo }: OutboundMessage, type: string) {
  return {
    messaging_product: 'whatsapp',
    recipient_type: 'individual',
    to: to.chatId,
    ...omitUndefined({ context: replyTo === undefined ? undefined : { message_id: replyTo } }),
    type,
  }
}

export function encodeText(message: OutboundMessage) {
  return { ...envelope(message, 'text'), text: { body: message.text, preview_url: false } }
}

/** Whether the buttons and the text are one message. */
export function fitsButtons({ text }: OutboundMessage): boolean {
  return text !== '' && text.length <= MAX_BODY_WITH_BUTTONS
}

/** Up to three choices are buttons; more are rows of a list. */
export function encodeButtons(message: OutboundMessage) {
  const buttons = (message.buttons ?? []).slice(0, MAX_ROWS)
  const body = { text: fitsButtons(message) ? message.text : 'Choose:' }
  if (buttons.length <= MAX_BUTTONS) {
    const replies = buttons.map(({ label, value }) => ({
      type: 'reply',
      reply: { id: value, title: label.slice(0, 20) },
    }))
    return { ...envelope(message, 'interactive'), interactive: { type: 'button', body, action: { buttons: replies } } }
  }
  const rows = buttons.map(({ label, value }) => ({ id: value, title: label.slice(0, 24) }))
  const action = { button: 'Choose', sections: [{ title: 'Choices', rows }] }
  return { ...envelope(message, 'interactive'), interactive: { type: 'list', body, action } }
}

/** Whether the text fits under the file. Audio has no text under it. */
export function fitsCaption({ text, attachments, buttons }: OutboundMessage): boolean {
  const [file] = attachments
  const isPlain = attachments.length === 1 && (buttons ?? []).length === 0
  return isPlain && file !== undefined && mediaType(file) !== 'audio' && text.length <= MAX_CAPTION
}

/** The kind of message that shows a file. Media types that WhatsApp does not show are documents. */
export function mediaType({ mime }: OutboundAttachment): 'image' | 'audio' | 'video' | 'document' {
  if (mime === 'image/jpeg' || mime === 'image/png') return 'image'
  if (/^audio\/(aac|mp4|mpeg|amr|ogg)$/.test(mime)) return 'audio'
  return mime === 'video/mp4' || mime === 'video/3gpp' ? 'video' : 'document'
}

export function encodeMedia(message: OutboundMessage, attachment: OutboundAttachment, id: string, caption: string) {
  const type = mediaType(attachment)
  const media = {
    id,
    ...(caption !== '' && { caption }),
    ...(type === 'document' && { filename: attachment.name }),
  }
  return { ...envelope(message, type), [type]: media }
}

export function encodeReaction(chatId: string, messageId: string, emoji: string) {
  return {
    messaging_product: 'whatsapp',
    recipient_type: 'individual',
    to: chatId,
    type: 'reaction',
    reaction: { message_id: messageId, emoji },
  }
}

/** Shows the typing indicator, and marks the message as read: there is no other way. */
export function encodeTyping(messageId: string) {
  return {
    messaging_product: 'whatsapp',
    status: 'read',
    message_id: messageId,
    typing_indicator: { type: 'text' },
  }
}
