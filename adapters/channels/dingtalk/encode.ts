import type { OutboundMessage } from 'svc/channels'
import { DIRECT } from './decode.ts'

const MAX_TITLE = 50

/** What notifications and the list of chats show: the beginning of the message. */
function titleOf({ plainText }: OutboundMessage): string {
  const [line = ''] = plainText.trim().split('\n', 1)
  return [...line].slice(0, MAX_TITLE).join('') || '…'
}

/** The body of a message to a session. */
export function encodeSessionMessage(message: OutboundMessage) {
  return { msgtype: 'markdown', markdown: { title: titleOf(message), text: message.text } }
}

/** The path and the body of a message to a person or a group. */
export function encodeMessage(message: OutboundMessage, robotCode: string) {
  const { chatId } = message.to
  const content = {
    robotCode,
    msgKey: 'sampleMarkdown',
    msgParam: JSON.stringify({ title: titleOf(message), text: message.text }),
  }
  return chatId.startsWith(DIRECT)
    ? { path: '/v1.0/robot/oToMessages/batchSend', json: { ...content, userIds: [chatId.slice(DIRECT.length)] } }
    : { path: '/v1.0/robot/groupMessages/send', json: { ...content, openConversationId: chatId } }
}
