import * as v from 'valibot'
import type { Attachments } from './attachments.ts'
import { holdsPicture, SEND_PICTURES, SessionId, withoutPictures } from './schema.ts'
import { NestingError, orAbsent } from 'svc/internal'
import { readJson, omitUndefined } from 'svc/sdk'

export type ClientFrame =
  | {
      readonly type: 'message'
      readonly text: string
      readonly attachments?: Attachments
      /** The active one without it. */ readonly sessionId?: string
      /** Given back with the response. */ readonly messageId?: string
    }
  | { readonly type: 'ping' }
  | { readonly type: 'invalid'; readonly why: string }

const Piece = v.union([
  v.pipe(
    v.object({ text: v.string() }),
    v.transform(({ text }) => text),
  ),
  v.pipe(
    v.object({ content: v.string() }),
    v.transform(({ content }) => content),
  ),
])
const Text = v.union([
  v.string(),
  Piece,
  v.pipe(
    v.array(v.union([v.string(), Piece])),
    v.transform((pieces) => pieces.join('\n')),
  ),
])
const partsOf = ({ content, message }: { content?: unknown; message?: unknown }): object => ({ content, message })
const Frame = withoutPictures({
  type: v.optional(v.string()),
  content: v.optional(Text),
  message: v.optional(Text),
  command: v.optional(v.string()),
  args: v.optional(v.string(), ''),
  id: v.optional(v.union([v.pipe(v.string(), v.maxLength(200)), v.pipe(v.number(), v.transform(String))])),
  session_id: orAbsent(SessionId),
  attachments: v.optional(
    v.nullable(v.pipe(v.array(v.object({ file_id: v.pipe(v.string(), v.uuid(), v.toLowerCase()) })), v.maxLength(16))),
    [],
  ),
})

/**
 * Both message forms of the interface: `{type, content}` and `{message}`, with `content` as text or as an object. A
 * frame that is no JSON object is a message.
 */
export function decodeFrame(raw: string): ClientFrame {
  const json = parseJson(raw)
  if (json instanceof NestingError) return { type: 'invalid', why: `The frame is ${json.message}` }
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    return toMessage(typeof json === 'string' ? json : raw)
  const parsed = v.safeParse(Frame, json)
  if (holdsPicture(partsOf(json)) || parsed.issues?.some(({ message }) => message === SEND_PICTURES))
    return { type: 'invalid', why: SEND_PICTURES }
  if (!parsed.success)
    return {
      type: 'invalid',
      why:
        'Not a frame this service knows: a message needs its text in "content"; ' +
        'attachments are a list of {"file_id"}, and "session_id" is the id of a session',
    }
  const { type, content, message, command, args, id, session_id: sessionId, attachments } = parsed.output
  const text = content ?? message
  if (type === 'ping') return { type: 'ping' }
  if (type === 'command' && command !== undefined) return toMessage(`/${command.replace(/^\//, '')} ${args}`.trim())
  if (type !== undefined && type !== 'message')
    return { type: 'invalid', why: `Unknown frame type "${type.slice(0, 50)}"` }
  if (text === undefined) return { type: 'invalid', why: 'A message needs its text in "content"' }
  return toMessage(text, attachments ?? undefined, { messageId: id, sessionId })
}

function toMessage(
  raw: string,
  attachments: Attachments = [],
  ids: { readonly messageId?: string | undefined; readonly sessionId?: string | undefined } = {},
): ClientFrame {
  const text = raw.replaceAll(CONTROL, '')
  return text.trim() === ''
    ? { type: 'invalid', why: 'The message is empty' }
    : {
        type: 'message',
        text,
        ...(attachments.length > 0 ? { attachments } : {}),
        ...omitUndefined(ids),
      }
}
/** Control characters that are no part of a text: a terminal or a log that shows it would obey them. */
const CONTROL = /(?![\t\n\r])\p{Cc}/gu
function parseJson(text: string): unknown {
  // Plain text is a chat message by the interface, so this failure is an answer.
  try {
    return readJson(text)
  } catch (error) {
    return error instanceof NestingError ? error : undefined
  }
}
