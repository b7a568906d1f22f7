import { omitUndefined } from 'svc/sdk'
import type { OutboundMessage } from 'svc/channels'

/** The body of `POST /chat/messages`. A message of a chat is one line. */
export function encodeMessage({ to, text, replyTo }: OutboundMessage, senderId: string) {
  return omitUndefined({
    broadcaster_id: to.chatId,
    sender_id: senderId,
    message: text.replaceAll(/\s*[\r\n]+\s*/g, ' '),
    reply_parent_message_id: replyTo,
  })
}
