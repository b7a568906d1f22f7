import { omitUndefined } from 'svc/sdk'
import { isoTime } from 'svc/channels'
import type { InboundMessage } from 'svc/channels'
import { readContent } from './content.ts'
import type { Bot, CardEvent, EventHeader, Mention, MessageEvent } from './wire.ts'

/** In the text a mention is a key. */
const KEY = /@_(?:all|user_\d+)/g
/** Milliseconds of a date; larger numbers are microseconds, as those of cards are. */
const MAX_MS = 100_000_000_000_000

/** The message of a person; `undefined` for what is none, and for empty ones. The name of the sender is not in it. */
export function decodeMessage(
  { sender, message }: MessageEvent,
  bot: Bot,
  tenant?: string,
): InboundMessage | undefined {
  const id = sender.sender_id?.open_id
  if (sender.sender_type !== 'user' || id == null || id === bot.open_id) return undefined
  const { message_id: messageId, mentions: given } = message
  const mentions = given ?? []
  const kind = message.chat_type === 'p2p' ? 'direct' : 'group'
  const mentionsBot = kind === 'direct' || mentions.some((mention) => isOf(mention, bot))
  const { text: written, attachments } = readContent(messageId, message.message_type, message.content ?? '')
  const text = withNames(written, mentions, bot)
  if (text === '' && attachments.length === 0 && !mentionsBot) return undefined
  return omitUndefined({
    id: messageId,
    chat: omitUndefined({ id: message.chat_id, kind: kind as 'direct' | 'group', guildId: tenant }),
    threadId: message.thread_id || undefined,
    sender: { id, name: id },
    text,
    attachments,
    mentionsBot,
    replyTo: message.parent_id || undefined,
    sentAt: timeOf(message.create_time),
    // The indicator is a reaction to the message.
    replyContext: { messageId },
  })
}

/** The press of a button as a message with its value. */
export function decodePress(
  { operator, action, context }: CardEvent,
  { event_id: id, create_time: time }: Pick<EventHeader, 'event_id' | 'create_time'>,
  chat: InboundMessage['chat'],
): InboundMessage {
  return omitUndefined({
    id,
    chat,
    threadId: action.value.thread || undefined,
    sender: { id: operator.open_id, name: operator.open_id },
    text: action.value.answer,
    attachments: [],
    mentionsBot: true,
    replyTo: context.open_message_id,
    sentAt: timeOf(time ?? ''),
  })
}

function isOf({ id }: Mention, bot: Bot): boolean {
  return id?.open_id === bot.open_id
}

/** Names are put in once: one that looks like a key is a name. What is addressed to the bot often begins with a comma. */
function withNames(written: string, mentions: readonly Mention[], bot: Bot): string {
  const names = new Map(mentions.map((mention) => [mention.key, isOf(mention, bot) ? '' : `@${mention.name ?? ''}`]))
  let isAddressed = false
  const text = written.replaceAll(KEY, (key) => {
    const name = key === '@_all' ? '@all' : names.get(key)
    isAddressed ||= name === ''
    return name ?? key
  })
  const trimmed = text.trim()
  return isAddressed ? trimmed.replace(/^[,:，：]\s*/, '') : trimmed
}

function timeOf(time: string): string {
  const number = Number(time)
  return isoTime(number > MAX_MS ? Math.floor(number / 1000) : number)
}
