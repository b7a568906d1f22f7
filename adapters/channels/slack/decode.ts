import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { messageId } from './message-id.ts'
import { mentions, readText } from './text.ts'
import type { Event, File, Interaction, SlashCommand } from './wire.ts'

export interface DecodeContext {
  readonly botId: string
  readonly ignoreBots: boolean
  /** The workspace. */
  readonly teamId?: string | undefined
}

/** The subtypes that people write; the others are notices, such as a new member. */
const SUBTYPES_OF_PEOPLE: ReadonlySet<string> = new Set(['file_share', 'thread_broadcast', 'bot_message', 'me_message'])
const UNREADABLE_MODES: ReadonlySet<string> = new Set(['external', 'tombstone', 'hidden_by_limit'])

/**
 * The message of a person; `undefined` for what is none. A message that mentions the bot arrives as `message` and as
 * `app_mention`: both become one, as they have the same id.
 */
export function decodeEvent(event: Event, context: DecodeContext): InboundMessage | undefined {
  if (event.type !== 'message' && event.type !== 'app_mention') return undefined
  if (event.subtype === 'message_changed') return decodeEdit(event, context)
  return decodeContent(event, event, context)
}

function decodeEdit(event: Event, context: DecodeContext): InboundMessage | undefined {
  const { message, previous_message: previous } = event
  // Slack reports a message as changed when it adds the preview of a link, too.
  if (!message || message.text === previous?.text) return undefined
  const decoded = decodeContent(event, message, context)
  return decoded && { ...decoded, isEdit: true }
}

type Content = Pick<Event, 'user' | 'bot_id' | 'text' | 'ts' | 'thread_ts' | 'files' | 'subtype' | 'parent_user_id'>

function decodeContent(place: Event, content: Content, context: DecodeContext): InboundMessage | undefined {
  const { channel } = place
  const { ts } = content
  const sender = content.user ?? content.bot_id
  if (channel == null || ts == null || sender == null || !isOfPerson(content, context)) return undefined
  const chat = chatOf(channel, context.teamId, place.channel_type)
  const written = content.text ?? ''
  const mentionsBot = chat.kind === 'direct' || place.type === 'app_mention' || isForBot(content, context.botId)
  const text = readText(written, context.botId)
  const attachments = (content.files ?? []).flatMap(decodeFile)
  if (text === '' && attachments.length === 0 && !mentionsBot) return undefined
  return omitUndefined({
    id: messageId(channel, ts),
    chat,
    // The first message of a thread names itself.
    threadId: content.thread_ts === ts ? undefined : (content.thread_ts ?? undefined),
    sender: omitUndefined({ id: sender, name: sender, isBot: isBot(content) || undefined }),
    text,
    attachments,
    mentionsBot,
    sentAt: timeOf(ts),
  })
}

function isOfPerson(content: Content, { botId, ignoreBots }: DecodeContext): boolean {
  if (content.user === botId || (ignoreBots && isBot(content))) return false
  return content.subtype == null || SUBTYPES_OF_PEOPLE.has(content.subtype)
}

function isBot({ bot_id: id, subtype }: Content): boolean {
  return id != null || subtype === 'bot_message'
}

function isForBot({ text, parent_user_id: threadOf }: Content, botId: string): boolean {
  return threadOf === botId || mentions(text ?? '', botId)
}

/** The press of a button as a message with its value. */
export function decodePress(press: Interaction): InboundMessage | undefined {
  const [action] = press.actions ?? []
  const { channel, user, message } = press
  if (press.type !== 'block_actions' || !action || action.value == null || !channel) return undefined
  return omitUndefined({
    id: messageId(channel.id, `${action.action_ts}/${action.action_id}`),
    chat: chatOf(channel.id, press.team?.id),
    threadId: message?.thread_ts ?? undefined,
    sender: { id: user.id, name: user.name ?? user.username ?? user.id },
    text: action.value,
    attachments: [],
    mentionsBot: true,
    replyTo: message ? messageId(channel.id, message.ts) : undefined,
    sentAt: timeOf(action.action_ts),
  })
}

/** A command of the app, such as `/svc status`, as a message. */
export function decodeCommand(command: SlashCommand, now: number): InboundMessage {
  const { channel_id: channel, user_id: id, user_name: name, text } = command
  return {
    id: messageId(channel, command.trigger_id),
    chat: chatOf(channel, command.team_id),
    sender: { id, name: name ?? id },
    text: `${command.command} ${text ?? ''}`.trim(),
    attachments: [],
    mentionsBot: true,
    sentAt: isoTime(now),
  }
}

function chatOf(channel: string, team?: string | null, type?: string | null): InboundMessage['chat'] {
  const kind = type === 'im' || channel.startsWith('D') ? ('direct' as const) : ('group' as const)
  return omitUndefined({ id: channel, kind, guildId: team ?? undefined })
}

function decodeFile(file: File): InboundAttachment[] {
  if (UNREADABLE_MODES.has(file.mode ?? '')) return []
  const mime = file.mimetype || 'application/octet-stream'
  return [
    omitUndefined({
      kind: attachmentKind(mime),
      name: file.name || file.id,
      mime,
      size: file.size ?? undefined,
      reference: { file: file.id },
    }),
  ]
}

/** Time stamps are seconds with a fraction. */
function timeOf(ts: string): string {
  return isoTime(Math.floor(Number(ts) * 1000))
}
