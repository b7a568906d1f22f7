import * as v from 'valibot'

export type ClientFrame =
  | { readonly type: 'message'; readonly text: string }
  | { readonly type: 'ping' }
  | { readonly type: 'invalid'; readonly why: string }

const Piece = v.union([v.pipe(v.object({ text: v.string() }), v.transform(({ text }) => text)), v.pipe(v.object({ content: v.string() }), v.transform(({ content }) => content))])
const Text = v.union([v.string(), Piece, v.pipe(v.array(v.union([v.string(), Piece])), v.transform((pieces) => pieces.join('\n')))])
const Frame = v.object({
  type: v.optional(v.string()), content: v.optional(Text), message: v.optional(Text), command: v.optional(v.string()), args: v.optional(v.string(), ''),
})

/** Both listings of the interface: `{type, content}` and `{message}`, with `content` as text or as an object. What is no JSON object is a message. */
export function decodeFrame(raw: string): ClientFrame {
  const json = parseJson(raw)
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return toMessage(typeof json === 'string' ? json : raw)
  const parsed = v.safeParse(Frame, json)
  if (!parsed.success) return { type: 'invalid', why: 'Not a frame this service knows: a message needs its text in "content"' }
  const { type, content, message, command, args } = parsed.output
  const text = content ?? message
  if (type === 'ping') return { type: 'ping' }
  if (type === 'command' && command !== undefined) return toMessage(`/${command.replace(/^\//, '')} ${args}`.trim())
  if (type !== undefined && type !== 'message') return { type: 'invalid', why: `Unknown frame type "${type.slice(0, 50)}"` }
  if (text === undefined) return { type: 'invalid', why: 'A message needs its text in "content"' }
  return toMessage(text)
}

function toMessage(text: string): ClientFrame {
  return text.trim() === '' ? { type: 'invalid', why: 'The message is empty' } : { type: 'message', text }
}
function parseJson(text: string): unknown {
  // Plain text is a chat message by the interface, so this failure is an answer.
  try { return JSON.parse(text) } catch { return undefined }
}
