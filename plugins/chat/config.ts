import * as v from 'valibot'

const count = v.pipe(v.number(), v.integer(), v.minValue(1))
export const ChatConfig = v.object({
  /** Of one message, as UTF-8. Over it the answer is 413. */
  message_bytes: v.optional(count, 256 * 1024),
  message_chars: v.optional(count, 100_000),
  images_per_message: v.optional(count, 16),
  /** Turns that may wait or run in one session before more are refused. */
  queue_length: v.optional(count, 256),
  /** Messages of the session the model is given. */
  history_messages: v.optional(count, 50),
  /** Calls of the model in one turn; a manifest may ask for fewer. */
  max_iterations: v.optional(count, 50),
  /** Tool calls in one turn. */
  tool_calls_per_turn: v.optional(count, 30),
  /** Text for a WebSocket is held back for so long or until it has so many characters. */
  text_flush_ms: v.optional(count, 50),
  text_flush_chars: v.optional(count, 200),
  agents_updated_ms: v.optional(count, 5000),
  /** A socket that has just opened waits so long for its first list of agents. */
  agents_updated_first_ms: v.optional(count, 500),
})
export type ChatConfig = v.InferOutput<typeof ChatConfig>
