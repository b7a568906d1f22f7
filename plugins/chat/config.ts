import * as v from 'valibot'
import { fields, fileOnly, settable } from 'svc/sdk'

const count = (description: string) => v.pipe(v.number(), v.integer(), v.minValue(1), v.description(description))
const history = 'says how much of its own past an agent is given'
const pace = 'says when a client is told, not what'
const part = v.pipe(v.number(), v.minValue(0.05), v.maxValue(1))
const Compaction = settable(
  history,
  v.object({
    threshold_messages: v.optional(
      count('Messages of a session above which the older ones are summarised before the next turn.'),
      30,
    ),
    keep_recent: v.optional(count('Newest messages that are never summarised.'), 10),
    max_summary_tokens: v.optional(count('Longest summary, in tokens.'), 1024),
    token_threshold_ratio: v.optional(
      v.pipe(
        part,
        v.description(
          'Part of the window of the model above which the older messages are summarised before the next turn.',
        ),
      ),
      0.7,
    ),
    max_chunk_chars: v.optional(count('Characters of messages that are summarised in one call.'), 80_000),
  }),
)
export type CompactionConfig = v.InferOutput<typeof Compaction>
export const ChatConfig = fileOnly(
  'says what agents are kept from, and how much they may do',
  v.object({
    personal_data: v.optional(
      v.pipe(
        v.picklist(['off', 'identifiers', 'contacts']),
        v.description(
          'Personal data that is labelled in messages and tool results and is sent nowhere unless a person approves.',
        ),
      ),
      'identifiers',
    ),
    compaction: v.optional(Compaction, {}),
    message_bytes: v.optional(count('Largest message, in bytes of UTF-8.'), 256 * 1024),
    message_chars: v.optional(count('Longest message, in characters.'), 100_000),
    images_per_message: v.optional(count('Images that one message may have.'), 16),
    attachment_chars: v.optional(
      count('Characters of one attached file that the model is shown; the rest stays in the file.'),
      20_000,
    ),
    queue_length: v.optional(count('Turns of one session that may wait or run before more are refused.'), 256),
    history_messages: v.optional(
      settable(history, count('Newest messages of the session that the model is given.')),
      50,
    ),
    turn_ms: v.optional(
      count(
        'Milliseconds the models may take in one turn, retries included; tools and waiting for a person do not count.',
      ),
      1_800_000,
    ),
    max_iterations: v.optional(count('Calls of the model in one turn; a manifest may ask for fewer.'), 50),
    reasoning_chars: v.optional(
      count('Characters of the reasoning of one turn that are kept with its messages; all of it is streamed.'),
      100_000,
    ),
    tool_calls_per_turn: v.optional(count('Tool calls in one turn.'), 30),
    intersect_rights: fields.flag(
      'Limit what an agent does for other agents to what each of them may do itself.',
      {},
      true,
    ),
    screening: v.optional(
      v.pipe(
        v.picklist(['off', 'warn', 'block']),
        v.description(
          'Outside text that looks like instructions: `warn` marks it and asks before risky calls; `block` hides it.',
        ),
      ),
      'warn',
    ),
    waiting_after_ms: v.optional(
      settable(pace, count('Milliseconds a tool call waits to be allowed before its turn counts as waiting.')),
      50,
    ),
    progress_ms: v.optional(
      settable(pace, count('Milliseconds between two reports of a tool on how far it is.')),
      1000,
    ),
    text_flush_ms: v.optional(
      settable(pace, count('Milliseconds that streamed text is gathered before a WebSocket gets it.')),
      50,
    ),
    text_flush_chars: v.optional(
      settable(pace, count('Characters of gathered text that a WebSocket gets at once, without waiting longer.')),
      200,
    ),
    session_followers: v.optional(
      settable(
        pace,
        v.pipe(
          count('Streams of `GET /api/sessions/{id}/stream` that may be open, all sessions together.'),
          v.maxValue(10_000),
        ),
      ),
      500,
    ),
    agents_updated_ms: v.optional(
      settable(pace, count('Milliseconds between two lists of agents that a WebSocket gets.')),
      5000,
    ),
    agents_updated_first_ms: v.optional(
      settable(pace, count('Milliseconds until a new WebSocket gets its first list of agents.')),
      500,
    ),
  }),
)
export type ChatConfig = v.InferOutput<typeof ChatConfig>
