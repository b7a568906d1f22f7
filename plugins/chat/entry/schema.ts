import * as v from 'valibot'
import { orAbsent } from 'svc/internal'
import { FormatInput } from '../turn/response-format.ts'

/** What a client of another service is told that sends pictures in a form this one has no field for. */
export const SEND_PICTURES =
  'send pictures as attachments: POST /api/agents/{id}/upload, then "attachments": [{"file_id": "…"}]; ' +
  'POST /v1/chat/completions takes an image_url'

const PICTURE_NAME = /^(?:input_)?(?:image|picture|photo)(?:s|_?urls?|_?data)?$/i
const TEXT_NAME = /^(?:text|content|message)$/

/**
 * Whether parts of a message contain a picture: a field or type with such a name, or a data URL outside of the text.
 */
export function holdsPicture(parts: unknown): boolean {
  if (!isNested(parts)) return false
  return Object.entries(parts).some(([name, value]: [string, unknown]) =>
    typeof value === 'string'
      ? value !== '' &&
        (PICTURE_NAME.test(name === 'type' ? value : name) || (!TEXT_NAME.test(name) && /^data:image\//i.test(value)))
      : holdsPicture(value) || (PICTURE_NAME.test(name) && isNested(value) && Object.keys(value).length > 0),
  )
}

const isNested = (value: unknown): value is object => typeof value === 'object' && value !== null

/**
 * An object with these fields. It ignores other fields, but refuses pictures in them: the answer would be about a
 * picture that the model never saw.
 */
export function withoutPictures<T extends v.ObjectEntries>(entries: T) {
  return v.pipe(
    v.looseObject(entries),
    v.check(
      (body) =>
        !holdsPicture(Object.fromEntries(Object.entries(body).filter(([name]) => !Object.hasOwn(entries, name)))),
      SEND_PICTURES,
    ),
  )
}

const message = v.pipe(
  v.string(({ input }) => (holdsPicture(input) ? SEND_PICTURES : 'Expected text')),
  v.check((text) => text.trim() !== '', 'must not be empty'),
)
const uuid = (what: string) => v.pipe(v.string(), v.uuid(`Invalid ${what} ID`), v.toLowerCase())
export const SessionId = uuid('session')
const options = {
  session_id: orAbsent(SessionId),
  thinking: orAbsent(v.boolean()),
  attachments: orAbsent(v.pipe(v.array(v.object({ file_id: uuid('file') })), v.maxLength(16, 'at most 16'))),
  response_format: orAbsent(FormatInput),
}
export const NewMessage = withoutPictures({ message, ...options })
export type NewMessage = v.InferOutput<typeof NewMessage>
/** The alternate listing takes the message in the body of a GET, or in the query for clients that cannot send one. */
export const OptionalMessage = v.optional(withoutPictures({ message: orAbsent(message), ...options }))
export const MessageQuery = withoutPictures({
  message: v.optional(message),
  session_id: v.optional(SessionId),
  idempotency_key: v.optional(v.string()),
})
/** Interface 4.1, with what an existing client may want to know beside it. */
export const MessageAnswer = v.object({
  response: v.string(),
  /** What the model thought, where it says so and the agent shows it. */
  thinking: v.optional(v.string()),
  input_tokens: v.number(),
  output_tokens: v.number(),
  iterations: v.number(),
  cost_usd: v.nullable(v.number()),
  session_id: v.string(),
  turn_id: v.string(),
  provider: v.string(),
  model: v.string(),
  stop: v.picklist(['done', 'length', 'refused', 'cancelled', 'iterations']),
  context_pressure: v.optional(v.picklist(['low', 'medium', 'high', 'critical'])),
})
export const RetriedTurn = v.object({
  turn_id: v.string(),
  session_id: v.string(),
  agent_id: v.string(),
  /** The turn that failed. */
  retried: v.string(),
})
export const DroppedTurn = v.object({
  status: v.literal('dropped'),
  turn_id: v.string(),
  session_id: v.string(),
  agent_id: v.string(),
})
export const TurnParams = v.object({ id: uuid('agent'), turn_id: uuid('turn') })
/** Where a message stands and what came of it. */
export const ShownTurn = v.object({
  turn_id: v.string(),
  agent_id: v.string(),
  session_id: v.string(),
  entry_point: v.string(),
  state: v.picklist(['queued', 'running', 'waiting', 'done', 'failed', 'cancelled', 'interrupted']),
  text: v.string(),
  iterations: v.number(),
  usage: v.nullable(v.object({ input_tokens: v.number(), output_tokens: v.number() })),
  cost_usd: v.nullable(v.number()),
  provider: v.nullable(v.string()),
  model: v.nullable(v.string()),
  error: v.nullable(v.string()),
  failure: v.nullable(
    v.object({
      code: v.string(),
      message: v.string(),
      retryable: v.boolean(),
      retry_after_secs: v.optional(v.number()),
    }),
  ),
  /** What it waits for or does now. */
  phase: v.nullable(
    v.object({
      phase: v.string(),
      detail: v.string(),
      since: v.string(),
      retry_at: v.nullable(v.string()),
      attempt: v.nullable(v.number()),
    }),
  ),
  created_at: v.string(),
  /** Turns of the session that are answered before this one, the next one first. */
  ahead: v.array(v.string()),
})
const PageSize = v.pipe(
  v.string(),
  v.regex(/^\d{1,3}$/, 'Expected a whole number'),
  v.transform(Number),
  v.minValue(1),
  v.maxValue(500),
)
export const TurnsQuery = v.object({ limit: v.optional(PageSize, '50') })
export const TurnList = v.object({
  turns: v.array(
    v.omit(ShownTurn, ['text', 'iterations', 'usage', 'cost_usd', 'provider', 'model', 'failure', 'phase']),
  ),
})
export const OneTurn = v.object({ id: uuid('turn') })
export const Stopped = v.object({ status: v.literal('stopped'), message: v.string() })
