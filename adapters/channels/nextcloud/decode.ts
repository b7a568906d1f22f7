import * as v from 'valibot'
import { omitUndefined, readJson } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { renderText } from './text.ts'
import { Content, ParentMessage } from './wire.ts'
import type { Created, Message, Parameter, Room } from './wire.ts'

const ONE_TO_ONE = 1
const NOTE_TO_SELF = 6
const BOTS = 'bots'
const USERS = 'users'
/** Guests and people of bridges choose their names, and bridges make ids of them. */
const VERIFIED = new Set([USERS, 'federated_users', 'emails'])

export interface BotContext {
  readonly botName: string | undefined
  readonly directRooms: readonly string[]
  /** The server does not tell when a message was written. */
  readonly now: number
}

/** The message that the server tells a bot of; `undefined` for those of bots. */
export function decodeActivity({ actor, object, target }: Created, context: BotContext): InboundMessage | undefined {
  const { botName, directRooms, now } = context
  const content = v.safeParse(Content, readContent(object.content))
  const sender = senderOf(actor.id, actor.name)
  if (!content.success || sender === undefined) return undefined
  const { text: written, files } = renderText(content.output.message, content.output.parameters, undefined)
  // A bot cannot read files: what it knows of them is their names.
  const names = files.map(({ name }) => `[${name}]`)
  const { text, isNamed } = withoutName([written, ...names].filter((part) => part !== '').join('\n'), botName)
  const isDirect = directRooms.includes(target.id)
  const replied = object.inReplyTo
  return omitUndefined({
    id: object.id,
    chat: omitUndefined({
      id: target.id,
      kind: isDirect ? ('direct' as const) : ('group' as const),
      title: isDirect ? undefined : target.name || undefined,
    }),
    sender,
    text,
    attachments: [],
    mentionsBot: isDirect || isNamed || isBotsOwn(replied?.actor, botName),
    replyTo: replied?.object.id,
    sentAt: isoTime(now),
  })
}

/** A bot does not know its own id, and the name of another bot may be the same. */
function isBotsOwn(actor: { readonly id: string; readonly name: string } | undefined, botName: string | undefined) {
  return actor !== undefined && actor.id.startsWith(`${BOTS}/`) && (botName === undefined || actor.name === botName)
}

/** Bots cannot be mentioned: people write the name after an @. */
function withoutName(
  written: string,
  botName: string | undefined,
): { readonly text: string; readonly isNamed: boolean } {
  if (botName === undefined) return { text: written, isNamed: false }
  const mention = new RegExp(String.raw`(^|[^\w@.-])@"?${RegExp.escape(botName)}"?(?![\w-])`, 'gi')
  const text = written.replace(mention, '$1').trim()
  return text === written ? { text, isNamed: false } : { text: text.replace(/^[,:]\s*/, ''), isNamed: true }
}

export interface UserContext {
  readonly userId: string
  readonly room: Pick<Room, 'type' | 'token' | 'displayName'>
  readonly isEdit?: boolean
}

/** The message of a person, as an account sees it; `undefined` for its own, and for those of bots. */
export function decodeMessage(message: Message, { userId, room, isEdit }: UserContext): InboundMessage | undefined {
  const { actorType, actorId, actorDisplayName: name } = message
  const sender = senderOf(`${actorType}/${actorId}`, name)
  if (sender === undefined || (actorType === USERS && actorId === userId)) return undefined
  const { text, files, mentionsOwn } = renderText(message.message, message.messageParameters, userId)
  const attachments = files.flatMap(decodeFile)
  const isDirect = room.type === ONE_TO_ONE || room.type === NOTE_TO_SELF
  const parent = v.safeParse(ParentMessage, message.parent)
  const answered = parent.success ? parent.output : undefined
  const isForBot = mentionsOwn || (answered?.actorType === USERS && answered.actorId === userId)
  if (text === '' && attachments.length === 0 && !isForBot) return undefined
  return omitUndefined({
    id: String(message.id),
    chat: omitUndefined({
      id: room.token,
      kind: isDirect ? ('direct' as const) : ('group' as const),
      title: isDirect ? undefined : room.displayName || undefined,
    }),
    sender,
    text,
    attachments,
    mentionsBot: isDirect || isForBot,
    replyTo: answered && String(answered.id),
    sentAt: isoTime(message.timestamp * 1000),
    isEdit: isEdit || undefined,
  })
}

function senderOf(actor: string, name: string): InboundMessage['sender'] | undefined {
  const slash = actor.indexOf('/')
  const type = actor.slice(0, slash)
  const id = actor.slice(slash + 1)
  if (type === BOTS || id === '') return undefined
  return omitUndefined({
    id: actor,
    name: name || id,
    handle: type === USERS ? `@${id}` : undefined,
    isUnverified: VERIFIED.has(type) ? undefined : true,
  })
}

function decodeFile({ name, path, mimetype, size }: Parameter): readonly InboundAttachment[] {
  if (path === '' || path.length > 2000) return []
  const mime = mimetype.split(';', 1)[0] || 'application/octet-stream'
  const known = size != null && Number.isSafeInteger(size) && size >= 0 ? size : undefined
  return [omitUndefined({ kind: attachmentKind(mime), name, mime, size: known, reference: { path } })]
}

function readContent(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return undefined /* no content is no message */
  }
}
