import mime from 'mime'
import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { chatId } from './chat.ts'
import type { Attachment, Message } from './wire.ts'

/** The kinds of messages that are read, each with the ids it comes with. */
const PLACES = {
  C2C_MESSAGE_CREATE: privatePlace,
  GROUP_AT_MESSAGE_CREATE: groupPlace,
  GROUP_MESSAGE_CREATE: groupPlace,
  AT_MESSAGE_CREATE: channelPlace,
  MESSAGE_CREATE: channelPlace,
  DIRECT_MESSAGE_CREATE: directPlace,
} as const
export type MessageType = keyof typeof PLACES
export const isMessageType = (type: string): type is MessageType => Object.hasOwn(PLACES, type)

/** QQ sends these only to the bot that is mentioned. */
const TO_BOT: ReadonlySet<MessageType> = new Set(['GROUP_AT_MESSAGE_CREATE', 'AT_MESSAGE_CREATE'])
/** A face, with its name in encoded JSON. */
const FACE = /<faceType=\d{1,4},faceId="\d{0,10}",ext="([A-Za-z0-9+/=]{0,2000})">/g
const MAX_URL = 3000

interface Place {
  readonly chat: InboundMessage['chat']
  readonly senderId: string
}

export interface DecodeContext {
  readonly botId: string
  readonly ignoreBots: boolean
}

/** The message of a person; `undefined` for those of bots, and for empty ones. */
export function decodeMessage(
  type: MessageType,
  message: Message,
  { botId, ignoreBots }: DecodeContext,
): InboundMessage | undefined {
  const { author, member } = message
  const place = PLACES[type](message)
  if (!place || author.id === botId || (ignoreBots && author.bot === true)) return undefined
  const mentionsBot = place.chat.kind === 'direct' || TO_BOT.has(type) || isMentioned(message, botId)
  const text = textOf(message, botId)
  const attachments = message.attachments.flatMap(decodeAttachment)
  if (text === '' && attachments.length === 0 && !mentionsBot) return undefined
  return omitUndefined({
    id: message.id,
    chat: place.chat,
    sender: omitUndefined({
      id: place.senderId,
      name: member?.nick || author.username || place.senderId,
      isBot: author.bot || undefined,
      roles: member?.roles ?? undefined,
    }),
    text,
    attachments,
    mentionsBot,
    replyTo: message.message_reference?.message_id ?? undefined,
    sentAt: isoTime(Date.parse(message.timestamp ?? '')),
    replyContext: { message: message.id },
  })
}

function privatePlace({ author }: Message): Place | undefined {
  const id = author.user_openid
  return id ? { chat: { id: chatId('user', id), kind: 'direct' }, senderId: id } : undefined
}

function groupPlace({ author, group_openid: group }: Message): Place | undefined {
  const id = author.member_openid
  return id && group ? { chat: { id: chatId('group', group), kind: 'group' }, senderId: id } : undefined
}

function channelPlace({ author, channel_id: channel, guild_id: guild }: Message): Place | undefined {
  if (!author.id || !channel) return undefined
  const chat = { id: chatId('channel', channel), kind: 'group' as const, guildId: guild || undefined }
  return { chat: omitUndefined(chat), senderId: author.id }
}

function directPlace({ author, guild_id: guild }: Message): Place | undefined {
  return author.id && guild ? { chat: { id: chatId('dm', guild), kind: 'direct' }, senderId: author.id } : undefined
}

function isMentioned({ mentions }: Message, botId: string): boolean {
  return mentions.some(({ id, is_you: isYou }) => isYou === true || (id != null && id === botId))
}

/** The text with names in place of ids, and without the mention of the bot. */
function textOf({ content, mentions }: Message, botId: string): string {
  const names = new Map<string, string>()
  const own = new Set([botId])
  for (const { id, member_openid: member, nickname, username, is_you: isYou } of mentions)
    for (const one of [id, member]) {
      if (one && isYou) own.add(one)
      else if (one) names.set(one, nickname || username || '')
    }
  let isAddressed = false
  const text = content
    .replaceAll(FACE, (_, data: string) => faceOf(data))
    .replaceAll(/<@!?([\w-]{1,64})>/g, (mention, id: string) => {
      if (own.has(id)) isAddressed = true
      return own.has(id) ? '' : names.get(id) ? `@${names.get(id)}` : mention
    })
    .replaceAll(/&(lt|gt|amp);/g, (_, name: 'lt' | 'gt' | 'amp') => ENTITIES[name])
    .trim()
  // What is addressed to the bot begins with its name and often a comma.
  return isAddressed ? text.replace(/^[,:]\s*/, '') : text
}
const ENTITIES = { lt: '<', gt: '>', amp: '&' } as const

function faceOf(data: string): string {
  const name = /"text":"([^"\\]{1,50})"/.exec(Buffer.from(data, 'base64').toString('utf8'))?.[1]
  return name ?? '[face]'
}

function decodeAttachment(file: Attachment): readonly InboundAttachment[] {
  // Voices are in a format of QQ; the copy that everybody can play is a newer field.
  const wav = file.voice_wav_url || undefined
  const url = completed(wav ?? file.url)
  if (url === undefined) return []
  const name = file.filename || 'file'
  const type = wav === undefined ? mimeOf(file, name) : 'audio/wav'
  const size = wav === undefined ? (file.size ?? undefined) : undefined
  return [omitUndefined({ kind: attachmentKind(type), name, mime: type, size, reference: { url } })]
}

/** Types are media types, or words: `voice`, `file`. */
function mimeOf({ content_type: given }: Attachment, name: string): string {
  const type = given?.split(';', 1)[0]?.trim()
  if (type === 'voice') return 'audio/silk'
  return type?.includes('/') ? type : (mime.getType(name) ?? 'application/octet-stream')
}

/** Some addresses come without their scheme. */
function completed(url: string): string | undefined {
  if (url === '' || url.length > MAX_URL) return undefined
  const whole = /^https?:\/\//i.test(url) ? url : `https://${url.replace(/^\/+/, '')}`
  return URL.canParse(whole) ? whole : undefined
}
