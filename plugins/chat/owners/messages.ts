import * as v from 'valibot'
import type { ErrorCode } from 'svc/sdk'
import type { Actor } from 'svc/internal'
import type { EntryPoint } from '../../journal/contract.ts'
import type { TurnEvent } from '../contract.ts'

/** What the daemons on a database say to each other about turns. Another version may say what this one cannot read. */
export const TOPIC = 'chat.turns'

const id = v.string()
const count = v.pipe(v.number(), v.integer(), v.minValue(0))
export const TurnFacts = v.object({
  id,
  agentId: v.string(),
  sessionId: v.string(),
  // Written by the same code that reads it; a version that knows more entry points sends one that is shown as it is.
  entryPoint: v.custom<EntryPoint>((value) => typeof value === 'string'),
})
/** Enough to follow a turn. */
export type TurnFacts = v.InferOutput<typeof TurnFacts>
const Failure = v.object({
  code: v.custom<ErrorCode>((code) => typeof code === 'string'),
  message: v.string(),
  retryable: v.boolean(),
  retryAfterSecs: v.optional(v.number()),
})
const Event = v.custom<TurnEvent>(
  (event) => typeof event === 'object' && event !== null && 'type' in event && typeof event.type === 'string',
)

export const Message = v.variant('type', [
  /** A turn was relayed to the owner of its session, and is followed by the sender. */
  v.object({ type: v.literal('relayed'), to: v.string(), sessionId: id, turnId: id }),
  /** The events of a turn are asked for, those from one on. */
  v.object({ type: v.literal('follow'), turnId: id, from: count }),
  /** Events of a turn, the first one of which has the number `from`; the one that comes after them will have `next`. */
  v.object({ type: v.literal('events'), turnId: id, from: count, next: count, events: v.array(Event) }),
  /** The turn failed after so many events. */
  v.object({ type: v.literal('failed'), turnId: id, from: count, failure: Failure }),
  /** The turn neither waits nor runs at the sender. */
  v.object({ type: v.literal('gone'), turnId: id }),
  v.object({ type: v.literal('cancel'), turnId: id }),
  /** A session or an agent is gone: its turns are cancelled. `forget`: its messages are deleted too. */
  v.object({
    type: v.literal('cancel-all'),
    agentId: v.string(),
    sessionId: v.exactOptional(id),
    forget: v.exactOptional(v.boolean()),
  }),
  /** The sender is new, and knows nothing of what others follow. */
  v.object({ type: v.literal('joined') }),
  /** Somebody follows these sessions at the sender, and no others. */
  v.object({ type: v.literal('watched'), sessionIds: v.array(id) }),
  /** A turn entered the queue of a session that the receiver watches. */
  v.object({ type: v.literal('accepted'), turn: TurnFacts }),
  /** Shown to the followers of a session. */
  v.object({ type: v.literal('shown'), sessionId: id, event: v.string(), data: v.record(v.string(), v.unknown()) }),
  /** Sessions were handed over with open turns. */
  v.object({ type: v.literal('left') }),
])
export type Message = v.InferOutput<typeof Message>

/** Who sent a message, as it is kept with a relayed turn. */
export const Sender: v.GenericSchema<string, Actor> = v.pipe(
  v.string(),
  v.parseJson(),
  v.custom<Actor>((actor) => typeof actor === 'object' && actor !== null && 'kind' in actor),
)
