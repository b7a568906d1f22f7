import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import type { File, Me, Message, Room } from './wire.ts'

const MAX_FILES = 20
const THUMBNAIL = 'thumb-'

/** What is known of a message beside itself. */
export interface DecodeContext {
  readonly bot: Me
  readonly ignoreBots: boolean
  readonly room: Pick<Room, 't' | 'name' | 'fname' | 'usersCount' | 'usernames'>
  readonly isEdit?: boolean
  /** Whether the message is in a thread that the bot began. */
  readonly isInOwnThread?: boolean
}

/** The message of a person; `undefined` for what is none. */
export function decodeMessage(message: Message, context: DecodeContext): InboundMessage | undefined {
  const { bot, ignoreBots, room, isEdit } = context
  if (message.u._id === bot._id || message.t != null || (ignoreBots && message.bot != null)) return undefined
  const isDirect = isDirectRoom(room)
  const attachments = filesOf(message)
  const text = withoutMention(message.msg, bot.username)
  const mentionsBot = isDirect || isForBot(message, context)
  if (text === '' && attachments.length === 0 && !mentionsBot) return undefined
  return omitUndefined({
    id: message._id,
    chat: omitUndefined({
      id: message.rid,
      kind: isDirect ? ('direct' as const) : ('group' as const),
      title: isDirect ? undefined : room.fname || room.name || undefined,
    }),
    threadId: message.tmid || undefined,
    sender: senderOf(message),
    text,
    attachments,
    mentionsBot,
    sentAt: isoTime(message.ts),
    isEdit: isEdit || undefined,
  })
}

function isForBot({ mentions }: Message, { bot, isInOwnThread = false }: DecodeContext): boolean {
  return isInOwnThread || (mentions ?? []).some(({ _id: id }) => id === bot._id)
}

function senderOf({ u: { _id: id, username, name }, alias, bot }: Message): InboundMessage['sender'] {
  const isBot = bot != null
  return omitUndefined({
    id,
    name: alias || name || username || id,
    // What an integration writes has the user name of whoever made it.
    handle: isBot || !username ? undefined : `@${username}`,
    isBot: isBot || undefined,
  })
}

export function isDirectRoom({ t, usersCount, usernames }: DecodeContext['room']): boolean {
  return t === 'd' && (usersCount ?? usernames?.length ?? 2) <= 2
}

/** What is addressed to the bot begins with its name and often a comma. */
function withoutMention(written: string, username: string): string {
  const mention = new RegExp(`(^|[^\\w@.-])@${RegExp.escape(username)}(?![\\w-]|\\.\\w)`, 'gi')
  const text = written.replace(mention, '$1').trim()
  return text === written.trim() ? text : text.replace(/^[,:]\s*/, '')
}

/** The server lists a smaller copy of a picture as a file of its own. */
function filesOf({ files, file }: Message): readonly InboundAttachment[] {
  const all = files ?? (file ? [file] : [])
  const names = new Set(all.map(({ name }) => name))
  return all
    .filter(({ name }) => !(name?.startsWith(THUMBNAIL) && names.has(name.slice(THUMBNAIL.length))))
    .slice(0, MAX_FILES)
    .map(decodeFile)
}

function decodeFile({ _id: id, name, type, size }: File): InboundAttachment {
  const mime = type?.split(';', 1)[0] || 'application/octet-stream'
  return omitUndefined({
    kind: attachmentKind(mime),
    name: name || id,
    mime,
    size: size ?? undefined,
    reference: { file: id, name: (name || id).slice(0, 500) },
  })
}
