import * as v from 'valibot'
import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { Sessions } from '../../sessions/contract.ts'
import type { SessionStream } from './session-stream.ts'

const Params = v.object({ id: v.pipe(v.string(), v.uuid('Invalid session ID'), v.toLowerCase()) })
const turn = {
  turn_id: v.string(),
  entry_point: v.string(),
  message_id: v.nullable(v.string()),
  content: v.string(),
  images: v.number(),
  created_at: v.nullable(v.string()),
}
/** Beside these the events of Interface 6.2, each with the `turn_id` it belongs to. */
const FeedEvent = v.variant('type', [
  v.object({
    type: v.literal('snapshot'),
    session_id: v.string(),
    agent_id: v.string(),
    active_session_id: v.string(),
    /** What waits or runs, the running one first. */
    turns: v.array(v.object(turn)),
    /** What was said and done so far by the running one. */
    events: v.array(v.object({ event: v.string(), data: v.unknown() })),
  }),
  v.object({ type: v.literal('message'), ...turn }),
  v.object({ type: v.literal('active'), session_id: v.string() }),
  v.object({ type: v.picklist(['retried', 'dropped']), turn_id: v.string() }),
  v.object({ type: v.literal('cleared') }),
  v.object({
    type: v.literal('error'),
    turn_id: v.string(),
    error: v.object({ code: v.string(), message: v.string() }),
  }),
])

/** The events of a session, for whoever looks at it: a page, a second tab, a screen in another room. */
export function sessionStreamRoutes(stream: SessionStream, agents: Agents, sessions: Sessions): readonly AnyRoute[] {
  const follow = defineRoute({
    method: 'GET',
    path: '/api/sessions/:id/stream',
    summary: 'Follow a session: its messages and answers as they come, whatever entry point they came by',
    description:
      'First `snapshot`: what waits or runs, and what was said so far. ' +
      'Then `message` when one is accepted, followed by the events of its answer ' +
      'as `POST /api/agents/{id}/message/stream` sends them, each with `turn_id`; ' +
      '`error` when a turn fails, `active` when another session becomes the active one, ' +
      '`retried` or `dropped` when a failed message was, and is shown no more, ' +
      '`cleared` when the messages were deleted. A reader that falls behind is sent away and may connect again.',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: Params,
    returns: FeedEvent,
    streams: FeedEvent,
    feed: true,
    errors: ['session_not_found', 'rate_limit'],
    async handle({ params, signal }) {
      const session = await sessions.find(params.id)
      const agent = session
        ? await agents.find(session.agentId)
        : (await agents.list()).find(({ sessionId }) => sessionId === params.id)
      if (!agent) throw new Refusal('session_not_found', `No session ${params.id}`)
      return stream.follow({ sessionId: params.id, agentId: agent.id, activeId: agent.sessionId }, signal)
    },
  })
  return [follow]
}
