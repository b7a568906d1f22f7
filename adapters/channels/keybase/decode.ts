import { omitUndefined } from 'svc/sdk'
import { isoTime } from 'svc/channels'
import type { InboundMessage } from 'svc/channels'
import { encodeId } from './encode.ts'
import type { Message } from './wire.ts'

const TEAM = 'team'
const MAX_NAME = 255

export interface DecodeContext {
  readonly username: string
  /** Whether the bot sent the message with this id. */
  isOwn(id: string): boolean
}

/** The message of a person; `undefined` for those of the bot, reactions and the like. */
export function decodeMessage(message: Message, { username, isOwn }: DecodeContext): InboundMessage | undefined {
  const { sender, content, conversation_id: conversation } = message
  if (sender.username.toLowerCase() === username || message.is_ephemeral_expired) return undefined
  const body = bodyOf(content)
  if (body === undefined) return undefined
  const chat = chatOf(message)
  const replyTo = content.text?.replyTo ? encodeId(conversation, content.text.replyTo) : undefined
  const isMentioned = (message.at_mention_usernames ?? []).some((name) => name.toLowerCase() === username)
  return omitUndefined({
    id: encodeId(conversation, content.edit?.messageID ?? message.id),
    chat,
    sender: omitUndefined({
      id: sender.uid,
      name: sender.username || sender.uid,
      handle: sender.username || undefined,
      isBot: message.bot_info?.bot_username ? true : undefined,
    }),
    text: isMentioned ? withoutMention(body, username) : body,
    attachments: [],
    mentionsBot: chat.kind === 'direct' || isMentioned || (replyTo !== undefined && isOwn(replyTo)),
    replyTo,
    sentAt: isoTime(message.sent_at_ms),
    isEdit: content.edit ? true : undefined,
  })
}

/** The team of a message; `undefined` outside of teams. */
export function teamOf({ channel }: Message): string | undefined {
  return channel.members_type === TEAM ? channel.name : undefined
}

/** Files are only named: the program would put them on the disk of this machine. */
function bodyOf({ type, text, edit, attachment }: Message['content']): string | undefined {
  if (type === 'text') return text?.body || undefined
  if (type === 'edit') return edit?.body || undefined
  if (type !== 'attachment' || !attachment) return undefined
  const { filename, title } = attachment.object
  const name = `[file: ${filename.slice(0, MAX_NAME)}]`
  return title === '' || title === filename ? name : `${title} ${name}`
}

/** A chat without a team has the names of its members as its name. */
function chatOf({ conversation_id: id, channel }: Message): InboundMessage['chat'] {
  if (channel.members_type === TEAM)
    return { id, kind: 'group', title: `${channel.name}#${channel.topic_name}`, guildId: channel.name }
  const isGroup = channel.name.split(/[,#]/, 3).length > 2
  return isGroup ? { id, kind: 'group', title: channel.name } : { id, kind: 'direct' }
}

function withoutMention(text: string, username: string): string {
  return text
    .replace(new RegExp(`@${RegExp.escape(username)}(?![a-z0-9_])`, 'i'), '')
    .trim()
    .replace(/^[,:]\s*/, '')
}
