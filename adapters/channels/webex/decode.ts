import { decodeHTML } from 'entities'
import { omitUndefined } from 'svc/sdk'
import { isoTime } from 'svc/channels'
import type { InboundMessage } from 'svc/channels'
import type { Action, Message, Person } from './wire.ts'

const MENTION = /<spark-mention\b([^<>]{0,500})>([^<>]{0,500})<\/spark-mention>/g
/** Far beyond what a message can have. */
const MAX_HTML = 100_000

/** The message of a person; `undefined` for those of the bot, and for empty ones. Names and files are looked up later. */
export function decodeMessage(message: Message, botId: string, isEdit = false): InboundMessage | undefined {
  const { personId, personEmail, roomType, files } = message
  if (personId === botId) return undefined
  const kind = roomType === 'direct' ? ('direct' as const) : ('group' as const)
  const mentionsBot = kind === 'direct' || (message.mentionedPeople ?? []).includes(botId)
  const text = withoutMention(message, botId)
  if (text === '' && (files ?? []).length === 0 && !mentionsBot) return undefined
  return omitUndefined({
    id: message.id,
    chat: { id: message.roomId, kind },
    threadId: message.parentId ?? undefined,
    sender: senderOf(personId, personEmail),
    text,
    attachments: [],
    mentionsBot,
    sentAt: timeOf(message.created),
    isEdit: isEdit || undefined,
  })
}

/** Names are looked up later. */
function senderOf(id: string, email: string | null | undefined): InboundMessage['sender'] {
  const isBot = email?.endsWith('@webex.bot')
  return omitUndefined({ id, name: email || id, handle: email || undefined, isBot: isBot || undefined })
}

/** The press of a button as a message with its value. `person`: whoever pressed it, as the action has an id only. */
export function decodeAction(
  { id, messageId, personId, roomId, inputs, created }: Action,
  person: Person | undefined,
  isDirect: boolean,
): InboundMessage | undefined {
  const value = inputs?.['value']
  if (typeof value !== 'string') return undefined
  return omitUndefined({
    id,
    chat: { id: roomId, kind: isDirect ? ('direct' as const) : ('group' as const) },
    sender: senderOf(personId, person?.emails?.[0]),
    text: value,
    attachments: [],
    mentionsBot: true,
    replyTo: messageId ?? undefined,
    sentAt: timeOf(created),
  })
}

/** The text has the name of the bot where it is mentioned, as the HTML shows: its whole name, or the first part. */
function withoutMention({ text, html }: Message, botId: string): string {
  const written = text ?? ''
  if (html == null || html === '' || html.length > MAX_HTML) return written.trim()
  const names = [...html.matchAll(MENTION)]
    .filter(([, attributes = '']) => attributes.includes(`data-object-id="${botId}"`))
    .map(([, , name = '']) => decodeHTML(name))
  const rest = names.reduce((left, name) => left.replace(name, () => ''), written).trim()
  // What is addressed to the bot begins with its name and often a comma.
  return names.length === 0 ? rest : rest.replace(/^[,:]\s*/, '')
}

export function timeOf(written: string): string {
  return isoTime(Date.parse(written))
}
