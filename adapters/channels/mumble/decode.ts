import { randomUUID } from 'node:crypto'
import { omitUndefined } from 'svc/sdk'
import { htmlToText, isoTime } from 'svc/channels'
import type { InboundMessage } from 'svc/channels'
import type { TextMessage } from './wire.ts'

/** Somebody who is connected to the server. */
export interface User {
  readonly session: number
  readonly name: string
  readonly channelId: number
  readonly userId?: number
  readonly hash?: string
}
/** Before the id of a person in that of a direct chat: those of channels are numbers. */
export const DIRECT = '@'

export interface DecodeContext {
  readonly bot: User
  readonly now: number
  user(session: number): User | undefined
  channelName(id: number): string | undefined
}

/** A text message of a person; `undefined` for those of the server, and for empty ones. */
export function decodeMessage(message: TextMessage, context: DecodeContext): InboundMessage | undefined {
  const { bot } = context
  const sender = message.actor === undefined ? undefined : context.user(message.actor)
  if (!sender || sender.session === bot.session) return undefined
  const body = htmlToText(message.message) || pictureOf(message.message)
  const chat = chatOf(message, sender, context)
  const { text, isMention } = chat.kind === 'group' ? withoutMention(body, bot.name) : { text: body, isMention: true }
  if (body === '') return undefined
  return {
    // The server has no ids, and never sends a message twice.
    id: randomUUID(),
    chat,
    sender: toSender(sender),
    text,
    attachments: [],
    mentionsBot: isMention,
    sentAt: isoTime(context.now),
  }
}

/** The id of a person: of the registered user, else of the certificate, else the name, which anybody can take. */
export function senderId({ userId, hash, name }: User): string {
  if (userId !== undefined) return String(userId)
  return hash === undefined || hash === '' ? `~${name}` : hash
}

function toSender(user: User): InboundMessage['sender'] {
  const isRegistered = user.userId !== undefined
  const isNamed = !isRegistered && (user.hash ?? '') === ''
  return omitUndefined({
    id: senderId(user),
    name: user.name,
    // A name that looks like an id must not pass for it.
    handle: isRegistered && !/^(?:\d+|[0-9a-f]{40}|~.*)$/i.test(user.name) ? user.name : undefined,
    isUnverified: isNamed || undefined,
  })
}

/** Messages to a tree of channels name its root: they are answered where the bot is. */
function chatOf(
  { sessions, channels }: TextMessage,
  sender: User,
  { bot, channelName }: DecodeContext,
): InboundMessage['chat'] {
  if (sessions.includes(bot.session)) return { id: `${DIRECT}${senderId(sender)}`, kind: 'direct' }
  const id = channels.includes(bot.channelId) ? bot.channelId : (channels[0] ?? bot.channelId)
  return omitUndefined({ id: String(id), kind: 'group' as const, title: channelName(id) })
}

/** A picture is a part of the text. It cannot be read again later, so that it is only named. */
function pictureOf(html: string): string {
  return /<img\b/i.test(html) ? '[image]' : ''
}

/** `bot: hello`, `@bot hello`, or the name anywhere. */
function withoutMention(text: string, name: string): { readonly text: string; readonly isMention: boolean } {
  const escaped = RegExp.escape(name)
  const address = new RegExp(String.raw`^@?${escaped}(?:[:,]\s*|\s+|$)`, 'iu')
  if (address.test(text)) return { text: text.replace(address, ''), isMention: true }
  const isMention = new RegExp(String.raw`(?<![\p{L}\p{N}_])${escaped}(?![\p{L}\p{N}_])`, 'iu').test(text)
  return { text, isMention }
}
