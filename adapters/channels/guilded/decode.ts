import { omitUndefined } from 'svc/sdk'
import { isoTime } from 'svc/channels'
import type { InboundMessage } from 'svc/channels'
import type { Member, Message, User } from './wire.ts'

/** What is known of a message beside itself. */
export interface DecodeContext {
  readonly bot: User
  readonly ignoreBots: boolean
  readonly member?: Member | undefined
  /** Whether the message answers one of the bot. */
  readonly isReplyToBot?: boolean
}

/** The message of a person; `undefined` for what is none. */
export function decodeMessage(message: Message, context: DecodeContext, isEdit = false): InboundMessage | undefined {
  const { bot, member, isReplyToBot = false } = context
  if (!isOfPerson(message, context)) return undefined
  const isDirect = message.serverId == null
  const isMentioned = message.mentions?.users.some(({ id }) => id === bot.id) === true
  const text = isMentioned || isDirect ? withoutMention(message.content, mentionOf(bot)) : message.content.trim()
  const mentionsBot = isDirect || isMentioned || isReplyToBot
  if (text === '' && !mentionsBot) return undefined
  const chat = { id: message.channelId, kind: isDirect ? ('direct' as const) : ('group' as const) }
  return omitUndefined({
    id: message.id,
    chat: omitUndefined({ ...chat, guildId: message.serverId ?? undefined }),
    sender: senderOf(message, member),
    text,
    attachments: [],
    mentionsBot,
    replyTo: message.replyMessageIds[0],
    sentAt: isoTime(Date.parse(message.createdAt)),
    isEdit: isEdit || undefined,
  })
}

/** Other types are notices of the server. */
function isOfPerson(message: Message, { bot, ignoreBots, member }: DecodeContext): boolean {
  if (message.createdBy === bot.id || (ignoreBots && isBot(message, member))) return false
  return message.type == null || message.type === 'default'
}

function isBot({ createdByWebhookId: webhook }: Message, member: Member | undefined): boolean {
  return webhook != null || member?.user.type === 'bot'
}

function senderOf(message: Message, member: Member | undefined): InboundMessage['sender'] {
  const id = message.createdByWebhookId ?? message.createdBy
  return omitUndefined({
    id,
    name: member?.nickname || member?.user.name || id,
    roles: member?.roleIds.map(String),
  })
}

function mentionOf({ id, name }: User): RegExp {
  return new RegExp(String.raw`<@${RegExp.escape(id)}>|@${RegExp.escape(name)}(?![\p{L}\p{N}_])`, 'gu')
}

/** What is addressed to the bot begins with its name and often a comma. */
function withoutMention(written: string, mention: RegExp): string {
  const text = written.replace(mention, '').trim()
  return text === written.trim() ? text : text.replace(/^[,:]\s*/, '')
}
