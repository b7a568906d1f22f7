import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { timeOf } from './ulid.ts'
import type { Channel, File, Member, Message, User } from './wire.ts'

/** What is known of a message beside itself. */
export interface DecodeContext {
  readonly botId: string
  readonly ignoreBots: boolean
  readonly channel?: Channel | undefined
  readonly user?: User | undefined
  readonly member?: Member | undefined
  /** Whether the message answers one of the bot. */
  readonly isReplyToBot?: boolean
}

/** The message of a person; `undefined` for what is none. */
export function decodeMessage(message: Message, context: DecodeContext, isEdit = false): InboundMessage | undefined {
  const { botId, ignoreBots, user = message.user ?? undefined, member = message.member ?? undefined } = context
  const isBot = user?.bot != null || message.webhook != null
  if (message.author === botId || message.system != null || (ignoreBots && isBot)) return undefined
  const mention = `<@${botId}>`
  const isMentioned = message.mentions.includes(botId) || message.content.includes(mention)
  const chat = chatOf(message.channel, context.channel)
  const text = withoutMention(message.content, mention)
  const attachments = message.attachments.map(decodeFile)
  const mentionsBot = chat.kind === 'direct' || isMentioned || context.isReplyToBot === true
  if (text === '' && attachments.length === 0 && !mentionsBot) return undefined
  return omitUndefined({
    id: message._id,
    chat,
    sender: senderOf(message, user, member, isBot),
    text,
    attachments,
    mentionsBot,
    replyTo: message.replies[0],
    sentAt: isoTime(timeOf(message._id)),
    isEdit: isEdit || undefined,
  })
}

function chatOf(id: string, channel: Channel | undefined): InboundMessage['chat'] {
  if (channel?.channel_type === 'DirectMessage') return { id, kind: 'direct' }
  return omitUndefined({
    id,
    kind: 'group' as const,
    title: channel?.name || undefined,
    guildId: channel?.server || undefined,
  })
}

function senderOf(
  { author, webhook }: Message,
  user: User | undefined,
  member: Member | undefined,
  isBot: boolean,
): InboundMessage['sender'] {
  return omitUndefined({
    id: author,
    name: member?.nickname || user?.display_name || user?.username || webhook?.name || author,
    // A webhook has no account, whatever it calls itself.
    handle: user === undefined || webhook != null ? undefined : handleOf(user),
    isBot: isBot || undefined,
    roles: member?.roles ?? undefined,
  })
}

export const handleOf = ({ username, discriminator }: User): string =>
  `@${username}${discriminator ? `#${discriminator}` : ''}`

/** What is addressed to the bot begins with its name and often a comma. */
function withoutMention(written: string, mention: string): string {
  const text = written.replaceAll(mention, '').trim()
  return written.includes(mention) ? text.replace(/^[,:]\s*/, '') : text
}

function decodeFile(file: File): InboundAttachment {
  const mime = file.content_type?.split(';', 1)[0]?.trim() || 'application/octet-stream'
  return omitUndefined({
    kind: attachmentKind(mime),
    name: file.filename,
    mime,
    size: file.size ?? undefined,
    reference: { file: file._id, name: file.filename },
  })
}
