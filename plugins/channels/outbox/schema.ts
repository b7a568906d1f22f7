import * as v from 'valibot'
import { isObject } from 'svc/sdk'
import type { Payload } from './message.ts'
import { outboxStates } from './states.ts'

export type OutboxState = (typeof outboxStates)[number]

const Integer = v.pipe(v.union([v.number(), v.string(), v.bigint()]), v.transform(Number))
const StoredPayload = v.pipe(
  v.string(),
  v.parseJson(),
  v.custom<Payload>((value) => isObject(value) && typeof value['text'] === 'string'),
)
/** One message of the platform that was sent or is to be sent. */
export const OutboxRow = v.object({
  id: v.string(),
  message_id: v.string(),
  channel: v.string(),
  account: v.string(),
  chat: v.string(),
  /** Empty outside of threads. */
  thread: v.string(),
  /** Rows of a chat are sent in the order of this and `part`. */
  seq: v.string(),
  part: Integer,
  parts: Integer,
  kind: v.picklist(['answer', 'tool', 'command', 'notice', 'error', 'approval']),
  payload: StoredPayload,
  state: v.picklist(outboxStates),
  attempts: Integer,
  /** Attempts that ended without an answer of the platform: the message may be there once for each. */
  uncertain: Integer,
  /** Not to be sent before, ISO 8601 UTC. */
  next_at: v.nullable(v.string()),
  platform_id: v.nullable(v.string()),
  error: v.nullable(v.string()),
  agent_id: v.string(),
  turn_id: v.string(),
  created_at: v.string(),
  settled_at: v.nullable(v.string()),
})
export type OutboxRow = v.InferOutput<typeof OutboxRow>
