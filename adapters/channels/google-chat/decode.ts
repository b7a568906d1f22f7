import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import { attachmentKind, isoTime } from 'svc/channels'
import type { InboundAttachment, InboundMessage } from 'svc/channels'
import { BUTTON_VALUE } from './encode.ts'
import { AddOnEvent, Attachment, Event, Mention } from './wire.ts'
import type { Message, Space } from './wire.ts'

const MAX_ANNOTATIONS = 100
const MAX_ATTACHMENTS = 20
const THREADED: ReadonlySet<string> = new Set(['THREADED_MESSAGES', 'GROUPED_MESSAGES'])

/** What a person did, in whichever form it came. */
interface Action {
  readonly message: Message
  readonly space: Space
  readonly user: NonNullable<Message['sender']>
  /** The value of the button that was pressed. */
  readonly value?: string | undefined
  readonly time?: string | null | undefined
}

/** The message of a person, of either form of events; `undefined` for what is none. */
export function decodeEvent(raw: unknown): InboundMessage | undefined {
  const action = readEvent(raw) ?? readAddOnEvent(raw)
  if (!action || action.user.type === 'BOT') return undefined
  return action.value === undefined ? decodeMessage(action) : decodePress(action, action.value)
}

function readEvent(raw: unknown): Action | undefined {
  const parsed = v.safeParse(Event, raw)
  if (!parsed.success) return undefined
  const { type, eventTime: time, message, action, common } = parsed.output
  if (type !== 'MESSAGE' && type !== 'CARD_CLICKED') return undefined
  const given = common?.parameters?.[BUTTON_VALUE] ?? action?.parameters?.find(({ key }) => key === BUTTON_VALUE)?.value
  return toAction(message, parsed.output, type === 'CARD_CLICKED' ? { value: given, time } : undefined)
}

function readAddOnEvent(raw: unknown): Action | undefined {
  const parsed = v.safeParse(AddOnEvent, raw)
  if (!parsed.success) return undefined
  const { chat, commonEventObject: common } = parsed.output
  const written = chat.messagePayload ?? chat.appCommandPayload
  const pressed = chat.buttonClickedPayload
  const press = pressed ? { value: common?.parameters?.[BUTTON_VALUE], time: chat.eventTime } : undefined
  const { message, space } = written ?? pressed ?? {}
  return toAction(message, { space, user: chat.user }, press)
}

function toAction(
  message: Message | null | undefined,
  given: { readonly space?: Space | null | undefined; readonly user?: Message['sender'] },
  press: { readonly value: unknown; readonly time: string | null | undefined } | undefined,
): Action | undefined {
  const space = given.space ?? message?.space
  // The sender of a message with buttons is the app; who presses one is told beside it.
  const user = given.user ?? (press ? undefined : message?.sender)
  if (!message || !space || !user) return undefined
  if (!press) return { message, space, user }
  return typeof press.value === 'string' ? { message, space, user, value: press.value, time: press.time } : undefined
}

function decodeMessage({ message, space, user }: Action): InboundMessage | undefined {
  const chat = chatOf(space)
  const text = textOf(message)
  const attachments = (message.attachment ?? []).slice(0, MAX_ATTACHMENTS).flatMap(decodeAttachment)
  const mentionsBot = chat.kind === 'direct' || isForApp(message)
  if (text === '' && attachments.length === 0 && !mentionsBot) return undefined
  return omitUndefined({
    id: message.name,
    chat,
    threadId: threadOf(message, space),
    sender: senderOf(user),
    text,
    attachments,
    mentionsBot,
    replyTo: message.quotedMessageMetadata?.name ?? undefined,
    sentAt: isoTime(Date.parse(message.createTime ?? '')),
  })
}

function decodePress({ message, space, user, time }: Action, value: string): InboundMessage {
  return omitUndefined({
    id: `${message.name}/${time}`,
    chat: chatOf(space),
    threadId: threadOf(message, space),
    sender: senderOf(user),
    text: value,
    attachments: [],
    mentionsBot: true,
    replyTo: message.name,
    sentAt: isoTime(Date.parse(time ?? '')),
  })
}

/** In what is no command the mention of the app is not a part of the text. */
function textOf({ text, argumentText, slashCommand }: Message): string {
  return ((slashCommand == null ? argumentText : undefined) ?? text ?? '').trim()
}

/** Google passes on what mentions this app, so the mention of an app is one of this. */
function isForApp({ annotations, slashCommand }: Message): boolean {
  return slashCommand != null || (annotations ?? []).slice(0, MAX_ANNOTATIONS).some((raw) => v.is(Mention, raw))
}

function chatOf({ name, displayName, spaceType, type, singleUserBotDm }: Space): InboundMessage['chat'] {
  // A direct message of two people is one too, where an app can be mentioned.
  const isDirect = type === 'DM' || (spaceType === 'DIRECT_MESSAGE' && singleUserBotDm === true)
  return omitUndefined({
    id: name,
    kind: isDirect ? ('direct' as const) : ('group' as const),
    title: displayName || undefined,
  })
}

/** Each message has a thread, even where the space shows none. */
function threadOf({ thread, threadReply }: Message, { spaceThreadingState: state }: Space): string | undefined {
  return threadReply === true || THREADED.has(state ?? '') ? thread?.name || undefined : undefined
}

function senderOf({ name, displayName, email }: Action['user']): InboundMessage['sender'] {
  return omitUndefined({ id: name, name: displayName || name, handle: email || undefined })
}

function decodeAttachment(raw: unknown): readonly InboundAttachment[] {
  const parsed = v.safeParse(Attachment, raw)
  if (!parsed.success) return []
  const { contentName, contentType, attachmentDataRef } = parsed.output
  const mime = contentType || 'application/octet-stream'
  const reference = { resource: attachmentDataRef.resourceName }
  return [{ kind: attachmentKind(mime), name: contentName || 'file', mime, reference }]
}
