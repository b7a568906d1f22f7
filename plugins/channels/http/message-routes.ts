import * as v from 'valibot'
import { defineRoute, line } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { inboxStates } from '../inbox/states.ts'
import { outboxStates } from '../outbox/states.ts'
import type { RouteDeps } from './routes.ts'

const MAX_LISTED = 500
const Params = v.object({ name: line(64) })
const MessageParams = v.object({ ...Params.entries, id: v.pipe(v.string(), v.uuid('Invalid id')) })
const limit = v.optional(
  v.pipe(v.string(), v.regex(/^\d{1,3}$/, 'must be a number'), v.transform(Number), v.maxValue(MAX_LISTED)),
  '50',
)
export const Sent = v.object({
  id: v.string(),
  account_id: v.string(),
  chat_id: v.string(),
  kind: v.string(),
  state: v.picklist(outboxStates),
  /** The beginning. */
  text: v.string(),
  attempts: v.number(),
  error: v.nullable(v.string()),
  next_at: v.nullable(v.string()),
  created_at: v.string(),
  settled_at: v.nullable(v.string()),
})
export const Received = v.object({
  id: v.string(),
  account_id: v.string(),
  message_id: v.string(),
  state: v.picklist(inboxStates),
  text: v.string(),
  attempts: v.number(),
  reason: v.nullable(v.string()),
  received_at: v.string(),
})
const Done = v.object({ status: v.picklist(['pending', 'discarded']) })

/** What waits in the inbox and the outbox of a channel, and what was put aside. */
export function messageRoutes(deps: RouteDeps): readonly AnyRoute[] {
  return [
    listSentRoute(deps),
    listReceivedRoute(deps),
    changeRoute(deps, 'outbox', 'retry'),
    changeRoute(deps, 'outbox', 'discard'),
    changeRoute(deps, 'inbox', 'retry'),
    changeRoute(deps, 'inbox', 'discard'),
  ]
}

function listSentRoute({ host }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/channels/:name/outbox',
    summary: 'List messages to a platform, by default those that could not be sent',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: Params,
    query: v.object({ state: v.optional(v.picklist(outboxStates), 'dead'), limit }),
    returns: v.object({ messages: v.array(Sent), total: v.number() }),
    errors: ['channel_not_found'],
    handle: async (input) => (await host()).handlers.listOutbox(input),
  })
}

function listReceivedRoute({ host }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/channels/:name/inbox',
    summary: 'List messages of people, by default those that could not be answered',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    params: Params,
    query: v.object({ state: v.optional(v.picklist(inboxStates), 'parked'), limit }),
    returns: v.object({ messages: v.array(Received), total: v.number() }),
    errors: ['channel_not_found'],
    handle: async (input) => (await host()).handlers.listInbox(input),
  })
}

const SUMMARIES = {
  outbox: { retry: 'Send a dead letter again', discard: 'Discard a dead letter' },
  inbox: { retry: 'Answer a parked message again', discard: 'Discard a parked message' },
} as const
function changeRoute({ host }: RouteDeps, box: keyof typeof SUMMARIES, verb: 'retry' | 'discard'): AnyRoute {
  return defineRoute({
    method: verb === 'retry' ? 'POST' : 'DELETE',
    path: verb === 'retry' ? `/api/channels/:name/${box}/:id/retry` : `/api/channels/:name/${box}/:id`,
    summary: SUMMARIES[box][verb],
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: MessageParams,
    returns: Done,
    errors: ['channel_not_found', 'message_not_found', 'conflict'],
    handle: async (input) => (await host()).handlers.changeMessage(input, box, verb),
  })
}
