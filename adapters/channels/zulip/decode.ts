import mime from 'mime'
import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import type { Message, User } from './wire.ts'

/** A file of the server, as the text of a message links it. */
const FILE = /\[([^\]\n]{0,255})\]\((\/user_uploads\/[^\s()]{1,1000})\)/g
const MAX_FILES = 20
export const DIRECT = 'dm:'

export interface DecodeContext {
  readonly bot: User
  readonly flags: readonly string[]
  readonly isEdit?: boolean
}

/** The message of a person; `undefined` for those of the bot, and for empty ones. */
export function decodeMessage(message: Message, { bot, flags, isEdit }: DecodeContext): InboundMessage | undefined {
  if (message.sender_id === bot.user_id) return undefined
  const chat = chatOf(message, bot)
  const attachments = filesOf(message.content)
  const mention = mentionOf(bot)
  const text = withoutMention(attachments.length > 0 ? message.content.replace(FILE, '') : message.content, mention)
  const mentionsBot = chat.kind === 'direct' || flags.includes('mentioned')
  if (text === '' && attachments.length === 0 && !mentionsBot) return undefined
  return omitUndefined({
    id: String(message.id),
    chat,
    threadId: isDirect(message) ? undefined : message.subject || undefined,
    sender: {
      id: String(message.sender_id),
      name: message.sender_full_name || message.sender_email,
      ...(message.sender_email !== '' && { handle: message.sender_email }),
    },
    text,
    attachments,
    mentionsBot,
    sentAt: isoTime(message.timestamp * 1000),
    isEdit: isEdit || undefined,
  })
}

/** The name of the channel; `undefined` for direct messages. */
export function channelOf(message: Message): string | undefined {
  return isDirect(message) || typeof message.display_recipient !== 'string' ? undefined : message.display_recipient
}

const isDirect = ({ type, stream_id: stream }: Message): boolean => type !== 'stream' || stream == null

function chatOf(message: Message, bot: User): InboundMessage['chat'] {
  const { display_recipient: recipient, stream_id: stream, sender_id: sender } = message
  if (!isDirect(message)) {
    const title = typeof recipient === 'string' ? recipient : undefined
    return omitUndefined({ id: String(stream), kind: 'group' as const, title })
  }
  const everybody = typeof recipient === 'string' ? [] : recipient
  const others = new Set([sender, ...everybody.map(({ id }) => id)].filter((id) => id !== bot.user_id))
  const ids = [...others].toSorted((one, other) => one - other)
  return { id: `${DIRECT}${ids.join(',')}`, kind: ids.length > 1 ? 'group' : 'direct' }
}

/** `@**Helper**` or, where several have this name, `@**Helper|12**`; with an underscore nobody is notified. */
function mentionOf({ full_name: name, user_id: id }: User): RegExp {
  return new RegExp(String.raw`@\*\*${RegExp.escape(name)}(?:\|${id})?\*\*`, 'g')
}

/** What is addressed to the bot begins with its name and often a comma. */
function withoutMention(written: string, mention: RegExp): string {
  const text = written.replace(mention, '').trim()
  return text === written.trim() ? text : text.replace(/^[,:]\s*/, '')
}

function filesOf(content: string): readonly InboundAttachment[] {
  const links = content.matchAll(FILE).take(MAX_FILES)
  return [...links].map(([, label = '', path = '']) => {
    const name = label || path.split('/').at(-1) || 'file'
    const type = mime.getType(name) ?? mime.getType(path) ?? 'application/octet-stream'
    return { kind: attachmentKind(type), name, mime: type, reference: { path } }
  })
}
