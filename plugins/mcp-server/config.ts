import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

const { flag, integer, text } = fields

/** `[plugins.mcp-server]`. */
export const Settings = fileOnly(
  'decides what clients of MCP may do, and how much they may use up',
  v.object({
    agent: text(
      'Agent whose tools clients see and use, by name or id, when they send no X-Svc-Agent-Id; the first agent when absent.',
    ),
    approve_by_client: flag(
      'Ask whoever sits at the client for approvals as well, where the client can ask. A program can answer for them.',
    ),
    max_body_bytes: integer('Bytes of one message of a client.', 4_194_304, 1_024, 67_108_864),
    max_sessions: integer('Sessions that are open; whoever has most of them makes room.', 256, 1, 100_000),
    session_idle_secs: integer('Seconds after which a session that is not used ends.', 3_600, 1, 2_592_000),
    max_requests_per_session: integer('Requests of a session that run at the same time.', 64, 1, 10_000),
    max_subscriptions: integer('Resources that a session follows, and streams of clients without one.', 256, 1, 10_000),
    max_events: integer(
      'Messages of a session that are kept for a client that lost its connection.',
      1_000,
      0,
      100_000,
    ),
    max_event_bytes: integer('Bytes of these messages.', 4_194_304, 1_024, 1_073_741_824),
    event_secs: integer('Seconds that they are kept.', 600, 1, 86_400),
    max_unread_bytes: integer(
      'Bytes that a client has not read yet before its stream is cut; it can resume.',
      8_388_608,
      1_024,
      1_073_741_824,
    ),
    retry_ms: integer('Milliseconds that a client waits before it connects again.', 1_000, 1, 600_000),
    page_size: integer('Resources and prompts in one page of a list.', 200, 1, 10_000),
    max_session_messages: integer('Newest messages of a session that its resource has.', 200, 1, 10_000),
    max_hops: integer(
      'Daemons that a request may come through, so that daemons that use each other do not call each other in a circle.',
      5,
      1,
      100,
    ),
    progress_ms: integer('Least milliseconds between two messages about what an agent has said.', 250, 1, 60_000),
    progress_chars: integer('Characters of what an agent has said last, in such a message.', 500, 1, 100_000),
  }),
)
export type Settings = v.InferOutput<typeof Settings>
