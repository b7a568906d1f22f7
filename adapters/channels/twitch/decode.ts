import { omitUndefined } from 'svc/sdk'
import { isoTime } from 'svc/channels'
import type { InboundMessage } from 'svc/channels'
import type { ChatMessage } from './wire.ts'

const MAX_ROLES = 50
/** Of programs that write with the token of their application; others do not say what they are. */
const BOT_BADGE = 'bot-badge'

export interface DecodeContext {
  /** The user id of the bot. */
  readonly botId: string
  /** When Twitch sent the event: the message has no time of its own. */
  readonly sentAt: string
}

/** The message of a person; `undefined` for those of the bot, and those of another channel that shares the chat. */
export function decodeMessage(message: ChatMessage, { botId, sentAt }: DecodeContext): InboundMessage | undefined {
  const { broadcaster_user_id: broadcaster, source_broadcaster_user_id: source, reply } = message
  if (message.chatter_user_id === botId) return undefined
  if (source != null && source !== broadcaster) return undefined
  const isMentioned = message.message.fragments.some(isMentionOf(botId))
  const mentionsBot = isMentioned || reply?.parent_user_id === botId
  const text = isMentioned ? withoutMention(message, botId) : message.message.text.trim()
  if (text === '' && !mentionsBot) return undefined
  return omitUndefined({
    id: message.message_id,
    chat: { id: broadcaster, kind: 'group' as const, title: message.broadcaster_user_name },
    sender: omitUndefined({
      id: message.chatter_user_id,
      name: message.chatter_user_name || message.chatter_user_login || message.chatter_user_id,
      handle: message.chatter_user_login || undefined,
      isBot: message.badges?.some(({ set_id: badge }) => badge === BOT_BADGE) || undefined,
      roles: message.badges?.slice(0, MAX_ROLES).map(({ set_id: role }) => role),
    }),
    text,
    attachments: [],
    mentionsBot,
    replyTo: reply?.parent_message_id,
    sentAt: isoTime(Date.parse(sentAt)),
  })
}

const isMentionOf =
  (botId: string) =>
  ({ type, mention }: ChatMessage['message']['fragments'][number]): boolean =>
    type === 'mention' && mention?.user_id === botId

/** What is addressed to the bot begins with its name and often a comma. */
function withoutMention({ message: { fragments } }: ChatMessage, botId: string): string {
  const others = fragments.filter((fragment) => !isMentionOf(botId)(fragment))
  const text = others.map((fragment) => fragment.text).join('')
  return text.trim().replace(/^[,:]\s*/, '')
}
