import { omitUndefined } from 'svc/sdk'
import type { OutboundMessage } from 'svc/channels'
import type { OutboundBody } from './wire.ts'

/** Who the messages of an account are from. */
export function senderIdOf(accountId: string): string {
  return `svc:${accountId}`
}

/** The body that is posted for a message. The same for every attempt but for the timestamp. */
export function encodeMessage(message: OutboundMessage, accountId: string, now: number): OutboundBody {
  const { to, id, text, replyTo } = message
  const name = to.replyContext?.['recipientName']
  return {
    message_id: id,
    sender_id: senderIdOf(accountId),
    sender_name: 'svc',
    recipient_id: to.chatId,
    recipient_name: typeof name === 'string' ? name : to.chatId,
    message: text,
    ...omitUndefined({ thread_id: to.threadId, reply_to: replyTo }),
    timestamp: new Date(now).toISOString(),
  }
}
