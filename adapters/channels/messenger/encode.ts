import { omitUndefined } from 'svc/sdk'
import type { OutboundAttachment, OutboundMessage } from 'svc/channels'

const MAX_BUTTONS = 13
const MAX_LABEL = 20
const MAX_VALUE = 1000

type Destination = Pick<OutboundMessage, 'to' | 'replyTo'>

/** A text, with choices above the place where people write. */
export function encodeText({ to, replyTo, text, buttons = [] }: OutboundMessage) {
  // What does not fit is left out: the text of the message says what can be answered.
  const choices = buttons
    .filter(({ value }) => value.length <= MAX_VALUE)
    .slice(0, MAX_BUTTONS)
    .map(({ label, value }) => ({
      content_type: 'text',
      title: [...label].slice(0, MAX_LABEL).join(''),
      payload: value,
    }))
  return {
    ...envelope({ to, ...omitUndefined({ replyTo }) }),
    message: omitUndefined({ text, quick_replies: choices.length === 0 ? undefined : choices }),
  }
}

/** A file, as the fields of a form: objects in them are JSON. */
export async function encodeFile({ to }: Destination, file: OutboundAttachment): Promise<FormData> {
  const message = { attachment: { type: file.kind, payload: { is_reusable: false } } }
  const form = new FormData()
  for (const [name, value] of Object.entries({ ...envelope({ to }), message }))
    form.set(name, typeof value === 'string' ? value : JSON.stringify(value))
  form.set('filedata', new Blob([new Uint8Array(await file.bytes())], { type: file.mime }), file.name)
  return form
}

export function encodeTyping(chatId: string) {
  return { recipient: { id: chatId }, sender_action: 'typing_on' }
}

export function encodeReaction(chatId: string, messageId: string, emoji: string) {
  return {
    recipient: { id: chatId },
    sender_action: 'react',
    payload: { message_id: messageId, reaction: emoji },
  }
}

function envelope({ to, replyTo }: Destination) {
  return {
    recipient: { id: to.chatId },
    messaging_type: 'RESPONSE',
    ...(replyTo !== undefined && { reply_to: { mid: replyTo } }),
  }
}
