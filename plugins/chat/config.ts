import * as v from 'valibot'
import { fileOnly, settable } from 'svc/sdk'

const count = v.pipe(v.number(), v.integer(), v.minValue(1))
const history = 'says how much of its own past an agent is given'
const pace = 'says when a client is told, not what'
const part = v.pipe(v.number(), v.minValue(0.05), v.maxValue(1))
const Compaction = settable(
  history,
  v.object({
    /** More messages than this are compacted before the next turn. */
    threshold_messages: v.optional(count, 30),
    /** The newest messages are never summarised. */
    keep_recent: v.optional(count, 10),
    max_summary_tokens: v.optional(count, 1024),
    /** Part of the model's window; fuller is compacted before the next turn. */
    token_threshold_ratio: v.optional(part, 0.7),
    /** Of transcript that is summarised in one call. */
    max_chunk_chars: v.optional(count, 80_000),
  }),
)
export type CompactionConfig = v.InferOutput<typeof Compaction>
export const ChatConfig = fileOnly(
  'says what agents are kept from, and how much they may do',
  v.object({
    /** What gets the label `Pii` in messages and tool results. Labelled text may leave only after a person approves. */
    personal_data: v.optional(v.picklist(['off', 'identifiers', 'contacts']), 'identifiers'),
    compaction: v.optional(Compaction, {}),
    /** Of one message, as UTF-8. Over it the answer is 413. */
    message_bytes: v.optional(count, 256 * 1024),
    message_chars: v.optional(count, 100_000),
    images_per_message: v.optional(count, 16),
    /** Of the text of one attached file that is quoted to the model; the rest is in the file. */
    attachment_chars: v.optional(count, 20_000),
    /** Turns that may wait or run in one session before more are refused. */
    queue_length: v.optional(count, 256),
    /** Messages of the session the model is given. */
    history_messages: v.optional(settable(history, count), 50),
    /**
     * Time for all model calls of one turn, with their retries and fallbacks. Tools and the wait for a person do not
     * count.
     */
    turn_ms: v.optional(count, 1_800_000),
    /** Calls of the model in one turn; a manifest may ask for fewer. */
    max_iterations: v.optional(count, 50),
    /** Of what the models think in one turn, this much is kept with its messages; all of it is streamed. */
    reasoning_chars: v.optional(count, 100_000),
    /** Tool calls in one turn. */
    tool_calls_per_turn: v.optional(count, 30),
    /**
     * Text from outside that looks like instructions: `warn` marks it and makes the turn ask before risky calls,
     * `block` withholds it.
     */
    screening: v.optional(v.picklist(['off', 'warn', 'block']), 'warn'),
    /** A call of a tool that waits longer for its gate makes its turn a waiting one. */
    waiting_after_ms: v.optional(settable(pace, count), 50),
    /** Text for a WebSocket is held back for so long or until it has so many characters. */
    text_flush_ms: v.optional(settable(pace, count), 50),
    text_flush_chars: v.optional(settable(pace, count), 200),
    /** Streams of `GET /api/sessions/{id}/stream` that may be open, all sessions together. */
    session_followers: v.optional(settable(pace, v.pipe(count, v.maxValue(10_000))), 500),
    agents_updated_ms: v.optional(settable(pace, count), 5000),
    /** A socket that has just untagReplay waits so long for its first list of agents. */
    agents_updated_first_ms: v.optional(settable(pace, count), 500),
  }),
)
export type ChatConfig = v.InferOutput<typeof ChatConfig>
