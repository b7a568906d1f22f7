import * as v from 'valibot'
import { LinkRefusal } from '../mac.ts'

/** The messages of a link (API facts, appendix C). */

const MAX_AGENTS = 10_000
/** Ids are hashed, and half of a character has no bytes. */
const text = v.pipe(
  v.string(),
  v.check((value) => value.isWellFormed(), 'It has half of a character'),
)
const id = v.pipe(text, v.minLength(1), v.maxLength(128))
const short = v.pipe(text, v.maxLength(1024))
const words = v.optional(v.pipe(v.array(short), v.maxLength(1000)), [])

export const AgentInfo = v.object({
  id,
  name: v.pipe(v.string(), v.maxLength(256)),
  description: v.optional(v.pipe(v.string(), v.maxLength(4096)), ''),
  tags: words,
  tools: words,
  state: v.optional(short, ''),
})
export type AgentInfo = v.InferOutput<typeof AgentInfo>

export const Request = v.variant('method', [
  v.object({ id, type: v.literal('request'), method: v.literal('discover'), query: v.optional(short, '') }),
  v.object({
    id,
    type: v.literal('request'),
    method: v.literal('agent_message'),
    agent: v.pipe(text, v.minLength(1), v.maxLength(256)),
    message: v.pipe(v.string(), v.minLength(1)),
    // Other programs write null for none.
    sender: v.nullish(v.pipe(text, v.maxLength(256))),
    /** Daemons that it came through. */
    hops: v.optional(v.unknown()),
  }),
  v.object({ id, type: v.literal('request'), method: v.literal('ping') }),
])
export type Request = v.InferOutput<typeof Request>
export type AgentMessage = Extract<Request, { readonly method: 'agent_message' }>

export const Response = v.variant('method', [
  v.object({
    id,
    type: v.literal('response'),
    method: v.literal('discover_result'),
    agents: v.pipe(v.array(AgentInfo), v.maxLength(MAX_AGENTS)),
  }),
  v.object({ id, type: v.literal('response'), method: v.literal('agent_response'), text: v.string() }),
  v.object({ id, type: v.literal('response'), method: v.literal('pong'), uptime_secs: v.number() }),
  v.object({ id, type: v.literal('response'), method: v.literal('error'), code: v.number(), message: v.string() }),
])
export type Response = v.InferOutput<typeof Response>

export const Notification = v.variant('event', [
  v.object({ id, type: v.literal('notification'), event: v.literal('agent_spawned'), agent: AgentInfo }),
  v.object({ id, type: v.literal('notification'), event: v.literal('agent_terminated'), agent_id: id }),
  v.object({ id, type: v.literal('notification'), event: v.literal('shutting_down') }),
])
export type Notification = v.InferOutput<typeof Notification>
export type Envelope = Request | Response | Notification

type Body<T> = T extends unknown ? Omit<T, 'id' | 'type'> : never
export type RequestBody = Body<Request>
export type ResponseBody = Body<Response>
export type NotificationBody = Body<Notification>

/** An answer with an error, by the number of the protocol. */
export class PeerError extends Error {
  override readonly name = 'PeerError'
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/**
 * Reads an envelope. A request that is none of ours, or a broken one, is a `PeerError` with its id, which is answered;
 * what has no id ends the link.
 */
export function readEnvelope(value: unknown): Envelope | { readonly id: string; readonly problem: PeerError } {
  const head = v.safeParse(v.looseObject({ id, type: v.string() }), value)
  if (!head.success) throw new LinkRefusal(400, 'A frame holds no message: it needs an id and a type')
  const { type } = head.output
  const schema = type === 'request' ? Request : type === 'response' ? Response : Notification
  const parsed = v.safeParse(schema as v.GenericSchema<unknown, Envelope>, value)
  if (parsed.success) return parsed.output
  const problem = new PeerError(400, problemOf(head.output, parsed.issues[0]))
  return { id: head.output.id, problem }
}

function problemOf({ type, method }: Readonly<Record<string, unknown>>, issue: v.BaseIssue<unknown>): string {
  if (method === 'handshake') return 'The handshake is over: this link is open already'
  const path = v.getDotPath(issue) ?? 'message'
  return `The ${type === 'response' ? 'response' : type === 'request' ? 'request' : 'notification'} is not valid at "${path}": ${issue.message}`
}
