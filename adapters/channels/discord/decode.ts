import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { timeOf } from './snowflake.ts'
import type { Attachment, Channel, Interaction, Message, User } from './wire.ts'

/** Who the bot is, and what is known of the channel a message is in. */
export interface DecodeContext {
  readonly botId: string
  readonly ignoreBots: boolean
  readonly channel?: Channel | undefined
}

/** Default, reply and command: the other types are notices of Discord, such as a pinned message. */
const TYPES_OF_PEOPLE: ReadonlySet<number> = new Set([0, 19, 20])
/** Threads of announcements, public and private ones. */
const THREADS: ReadonlySet<number> = new Set([10, 11, 12])
const FORWARD = 1

/** The message of a person; `undefined` for what is none. */
export function decodeMessage(message: Message, context: DecodeContext, isEdit = false): InboundMessage | undefined {
  const { author } = message
  if (!isOfPerson(message, context)) return undefined
  // Discord sends an update without a time of editing when it adds the preview of a link.
  if (isEdit && message.edited_timestamp == null) return undefined
  const text = textOf(message, context.botId)
  const attachments = message.attachments.map((file) => decodeAttachment(message, file))
  const mentionsBot = mentions(message, context.botId)
  if (text === '' && attachments.length === 0 && !mentionsBot) return undefined
  return omitUndefined({
    id: message.id,
    ...placeOf(message.channel_id, message.guild_id, context.channel),
    sender: senderOf(author, message.member, isBot(message)),
    text,
    attachments,
    mentionsBot,
    replyTo: replyOf(message),
    sentAt: isoTime(Date.parse(message.timestamp)),
    isEdit: isEdit || undefined,
  })
}

function isOfPerson(message: Message, { botId, ignoreBots }: DecodeContext): boolean {
  if (message.author.id === botId || (ignoreBots && isBot(message))) return false
  return TYPES_OF_PEOPLE.has(message.type)
}

function isBot({ author, webhook_id: webhook }: Message): boolean {
  return author.bot === true || webhook != null
}

function replyOf({ message_reference: reference }: Message): string | undefined {
  return reference?.type === FORWARD ? undefined : (reference?.message_id ?? undefined)
}

/** The press of a button as a message with its value. */
export function decodePress(press: Interaction, channel: Channel | undefined, now: number): InboundMessage | undefined {
  const user = press.member?.user ?? press.user
  const value = press.data?.custom_id
  if (!user || value == null || press.channel_id == null) return undefined
  return omitUndefined({
    id: press.id,
    ...placeOf(press.channel_id, press.guild_id, channel),
    sender: senderOf(user, press.member, user.bot === true),
    text: value,
    attachments: [],
    mentionsBot: true,
    replyTo: press.message?.id,
    sentAt: isoTime(timeOf(press.id, now)),
  })
}

function placeOf(channelId: string, guildId: string | null | undefined, channel: Channel | undefined) {
  const where = omitUndefined({
    kind: guildId == null ? ('direct' as const) : ('group' as const),
    guildId: guildId ?? undefined,
  })
  // A thread is a channel of its own, whose parent is the chat.
  if (channel && THREADS.has(channel.type) && channel.parent_id != null)
    return { chat: { id: channel.parent_id, ...where }, threadId: channel.id }
  return { chat: omitUndefined({ id: channelId, ...where, title: channel?.name ?? undefined }) }
}

function senderOf(user: User, member: Message['member'], isBot: boolean): InboundMessage['sender'] {
  return omitUndefined({
    id: user.id,
    name: member?.nick ?? user.global_name ?? user.username,
    handle: `@${user.username}`,
    isBot: isBot || undefined,
    roles: member?.roles ?? undefined,
  })
}

function mentions(message: Message, botId: string): boolean {
  return (
    message.guild_id == null ||
    message.mentions.some(({ id }) => id === botId) ||
    mentionOf(botId).test(message.content) ||
    message.referenced_message?.author?.id === botId
  )
}

function mentionOf(id: string): RegExp {
  return new RegExp(`<@!?${id}>`)
}

/** The text with names in place of ids, and without the mention of the bot. */
function textOf(message: Message, botId: string): string {
  const names = new Map(message.mentions.map((user) => [user.id, user.global_name ?? user.username]))
  const text = message.content
    .replaceAll(/<@!?(\d+)>/g, (mention, id: string) => (id === botId ? '' : nameOf(names.get(id), mention)))
    .replaceAll(/<a?(:\w+:)\d+>/g, '$1')
    .trim()
    // What is addressed to the bot begins with its name and often a comma.
    .replace(mentionOf(botId).test(message.content) ? /^[,:]\s*/ : '', '')
  const stickers = message.sticker_items.map(({ name }) => `[sticker: ${name}]`)
  return [text, ...stickers].filter((part) => part !== '').join('\n')
}

function nameOf(name: string | undefined, mention: string): string {
  return name === undefined ? mention : `@${name}`
}

function decodeAttachment(message: Message, file: Attachment): InboundAttachment {
  const mime = file.content_type?.split(';', 1)[0]?.trim() || 'application/octet-stream'
  return omitUndefined({
    kind: attachmentKind(mime),
    name: file.filename,
    mime,
    size: file.size ?? undefined,
    reference: { channel: message.channel_id, message: message.id, attachment: file.id, url: file.url },
  })
}
