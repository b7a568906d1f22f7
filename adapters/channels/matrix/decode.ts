import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import { isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { MessageContent } from './wire.ts'
import type { Event } from './wire.ts'

/** What is known of the room and of the bot in it. */
export interface DecodeContext {
  readonly roomId: string
  readonly botId: string
  readonly isDirect: boolean
  /** Display names by user id. */
  readonly names: ReadonlyMap<string, string>
  /** Whether the bot sent the event with this id. */
  isOwn(eventId: string): boolean
}

const KINDS: ReadonlyMap<string, InboundAttachment['kind']> = new Map([
  ['m.image', 'image'],
  ['m.audio', 'audio'],
  ['m.video', 'video'],
  ['m.file', 'file'],
])

/** A server name and an id. Others would lead to another place of the homeserver, with the token. */
const MEDIA_ADDRESS = /^mxc:\/\/[A-Za-z0-9[][A-Za-z0-9.:[\]-]{0,254}\/[\w-]{1,255}$/

/** The message of a person; `undefined` for what is none. */
export function decodeEvent(event: Event, context: DecodeContext): InboundMessage | undefined {
  const { event_id: id, sender } = event
  if (event.type !== 'm.room.message' || id == null || sender == null || sender === context.botId) return undefined
  const parsed = v.safeParse(MessageContent, event.content)
  // Bots answer with notices, so that no two of them answer each other for ever.
  if (!parsed.success || parsed.output.msgtype === 'm.notice') return undefined
  const content = parsed.output
  const replaced = relatedEvent(content, 'm.replace')
  const shown = (replaced === undefined ? undefined : content['m.new_content']) ?? content
  const replyTo = replyOf(content)
  const read = readBody(shown, replyTo, context)
  if (read.text === '' && read.attachments.length === 0 && !read.mentionsBot) return undefined
  return omitUndefined({
    id: replaced ?? id,
    chat: { id: context.roomId, kind: context.isDirect ? ('direct' as const) : ('group' as const) },
    threadId: relatedEvent(content, 'm.thread'),
    sender: { id: sender, name: context.names.get(sender) ?? sender },
    ...read,
    replyTo,
    sentAt: isoTime(event.origin_server_ts ?? 0),
    isEdit: replaced === undefined ? undefined : true,
  })
}

function readBody(content: Shown, replyTo: string | undefined, context: DecodeContext) {
  const written = textOf(content, replyTo !== undefined)
  const isReply = replyTo !== undefined && context.isOwn(replyTo)
  return {
    text: withoutMention(written, context),
    attachments: attachmentsOf(content),
    mentionsBot: context.isDirect || isReply || mentions(content, written, context),
  }
}

function relatedEvent(content: MessageContent, type: string): string | undefined {
  const relation = content['m.relates_to']
  return relation?.rel_type === type ? (relation.event_id ?? undefined) : undefined
}

/** A message in a thread names the last one before it for clients without threads, which is no reply. */
function replyOf(content: MessageContent): string | undefined {
  const relation = content['m.relates_to']
  if (relation?.rel_type === 'm.thread' && relation.is_falling_back === true) return undefined
  return relation?.['m.in_reply_to']?.event_id ?? undefined
}

type Shown = Omit<MessageContent, 'm.relates_to' | 'm.new_content'>

function textOf(content: Shown, isReply: boolean): string {
  // The body of a file is its name, unless another one stands beside it: then it is a caption.
  if (KINDS.has(content.msgtype) && (content.filename == null || content.filename === content.body)) return ''
  return isReply ? withoutQuote(content.body) : content.body
}

/** Older clients put the message that is answered before the answer. */
function withoutQuote(body: string): string {
  if (!body.startsWith('> ')) return body
  const lines = body.split('\n')
  const end = lines.findIndex((line) => !line.startsWith('>'))
  return end === -1 ? body : lines.slice(end).join('\n').replace(/^\n/, '')
}

function mentions(content: Shown, text: string, context: DecodeContext): boolean {
  const listed = content['m.mentions']
  // Who writes with this field says exactly whom they mean.
  if (listed?.user_ids != null) return listed.user_ids.includes(context.botId)
  return namesOf(context).some((name) => mentionOf(name).test(text))
}

function namesOf({ botId, names }: DecodeContext): readonly string[] {
  const name = names.get(botId)
  return name === undefined || name.trim() === '' ? [botId] : [botId, name]
}

function mentionOf(name: string): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{N}_])@?${RegExp.escape(name)}(?![\\p{L}\\p{N}_])`, 'iu')
}

/** Without the id of the bot, and without its name where it is addressed. */
function withoutMention(text: string, context: DecodeContext): string {
  const [, name] = namesOf(context)
  let rest = text.replaceAll(context.botId, '').trim()
  if (name !== undefined) {
    const address = new RegExp(`^@?${RegExp.escape(name)}(?=[\\s:,]|$)`, 'iu')
    rest = rest.replace(address, '')
  }
  return rest.replace(/^[:,]\s*/, '').trim()
}

function attachmentsOf(content: Shown): readonly InboundAttachment[] {
  const kind = KINDS.get(content.msgtype)
  if (!kind || content.url == null || !MEDIA_ADDRESS.test(content.url)) return []
  return [
    omitUndefined({
      kind,
      name: content.filename ?? content.body,
      mime: content.info?.mimetype || 'application/octet-stream',
      size: content.info?.size ?? undefined,
      reference: { url: content.url },
    }),
  ]
}
