import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { chatOfConversation, encodeWritten } from './address.ts'
import { Attachment } from './wire.ts'
import type { Channel, Conversation, Entry, SessionUser, Thread, User } from './wire.ts'

const MENTION = /\[([^\]\n]{0,255})\]\(twist-(group-)?mention:\/\/(\d{1,20})\)/g
const MAX_FILES = 20
const MAX_URL = 2000

export interface DecodeContext {
  readonly bot: SessionUser
  readonly ignoreBots: boolean
  /** Whoever wrote it, if the workspace knows them. */
  readonly sender: User | undefined
}
/** Where something is written: in a thread of a channel, or in a conversation. */
export type Place = { readonly thread: Thread; readonly channel: Channel } | { readonly conversation: Conversation }

/** The message of a person; `undefined` for those of the bot, and for notices. */
export function decodeEntry(entry: Entry | Thread, place: Place, context: DecodeContext): InboundMessage | undefined {
  const { bot, ignoreBots, sender } = context
  if (entry.creator === bot.id || entry.system_message != null || (ignoreBots && sender?.bot)) return undefined
  const { text, mentionsOwn } = readText(entry.content, bot.id)
  const chat = chatOf(place)
  const attachments = (entry.attachments ?? []).slice(0, MAX_FILES).flatMap(decodeFile)
  const mentionsBot = chat.kind === 'direct' || mentionsOwn || isOfBot(place, bot)
  if (text === '' && attachments.length === 0 && !mentionsBot) return undefined
  return omitUndefined({
    id: idOf(entry, place),
    chat,
    threadId: 'thread' in place ? String(place.thread.id) : undefined,
    sender: senderOf(entry.creator, sender),
    // What begins a thread has a title.
    text: 'title' in entry ? `${entry.title}\n\n${text}`.trim() : text,
    attachments,
    mentionsBot,
    sentAt: isoTime(entry.posted_ts * 1000),
    replyContext: { creator: entry.creator },
  })
}

const isOfBot = (place: Place, bot: SessionUser): boolean => 'thread' in place && place.thread.creator === bot.id

function idOf(entry: Entry | Thread, place: Place): string {
  if ('title' in entry) return encodeWritten({ kind: 'thread', id: entry.id })
  return encodeWritten({ kind: 'thread' in place ? 'comment' : 'message', id: entry.id })
}

function senderOf(id: number, user: User | undefined): InboundMessage['sender'] {
  return omitUndefined({
    id: String(id),
    name: user?.name || `user ${id}`,
    handle: user?.email || undefined,
    isBot: user?.bot ? true : undefined,
  })
}

function chatOf(place: Place): InboundMessage['chat'] {
  if ('thread' in place)
    return { id: String(place.channel.id), kind: 'group', title: place.channel.name || String(place.channel.id) }
  const { id, user_ids: users, title } = place.conversation
  const kind = users.length > 2 ? ('group' as const) : ('direct' as const)
  return omitUndefined({ id: chatOfConversation(id), kind, title: kind === 'group' ? title || undefined : undefined })
}

/** The text as people read it, without the mention of the bot. */
function readText(content: string, botId: number): { readonly text: string; readonly mentionsOwn: boolean } {
  let mentionsOwn = false
  const written = content.replaceAll(MENTION, (_, name: string, group: string | undefined, id: string) => {
    const isOwn = group === undefined && id === String(botId)
    mentionsOwn ||= isOwn
    return isOwn ? '' : `@${name}`
  })
  const text = written.trim()
  return { text: mentionsOwn ? text.replace(/^[,:]\s*/, '') : text, mentionsOwn }
}

/** Previews of addresses are attachments, too, without a name of a file. */
function decodeFile(raw: unknown): readonly InboundAttachment[] {
  const parsed = v.safeParse(Attachment, raw)
  if (!parsed.success || parsed.output.file_name === '' || parsed.output.url.length > MAX_URL) return []
  const { url, file_name: name, underlying_type: type, file_size: size } = parsed.output
  const mime = type.split(';', 1)[0] || 'application/octet-stream'
  return [omitUndefined({ kind: attachmentKind(mime), name, mime, size: size ?? undefined, reference: { url } })]
}
