import * as v from 'valibot'
import { defineRoute, line } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { RouteDeps } from '../http/routes.ts'
import { MatchRule } from './match-rule.ts'

const Binding = v.object({ agent: v.string(), match_rule: MatchRule })
const example = { agent: 'assistant', match_rule: { channel: 'telegram', peer_id: '4711' } }

/** Which agent answers whom on the channels. */
export function bindingRoutes(deps: RouteDeps): readonly AnyRoute[] {
  return [listRoute(deps), addRoute(deps), removeRoute(deps)]
}

function listRoute({ host }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/bindings',
    summary: 'List which agent answers whom',
    description: 'Oldest first. The position in the list is the index for the removal.',
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    returns: v.object({ bindings: v.array(Binding) }),
    example: { returns: { bindings: [example] } },
    handle: async () => (await host()).handlers.listBindings(),
  })
}

function addRoute({ host }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/bindings',
    summary: 'Bind chats or people to an agent',
    description:
      'A message goes to the agent of the most specific rule that matches: peer_id, channel_id and thread_id count 8, ' +
      'guild_id 4, roles and account_id 2, channel 1. Among equals the newest rule decides.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    body: v.object({ agent: v.pipe(line(128), v.description('Name or id')), match_rule: v.optional(MatchRule, {}) }),
    status: 201,
    returns: v.object({ status: v.literal('created') }),
    errors: ['agent_not_found', 'conflict'],
    idempotent: true,
    example: { body: example, returns: { status: 'created' } },
    handle: async (input) => (await host()).handlers.addBinding(input),
  })
}

function removeRoute({ host }: RouteDeps): AnyRoute {
  return defineRoute({
    method: 'DELETE',
    path: '/api/bindings/:index',
    summary: 'Remove a binding',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    params: v.object({
      index: v.pipe(v.string(), v.regex(/^\d{1,6}$/, 'must be the position in the list, from 0'), v.transform(Number)),
    }),
    returns: v.object({ status: v.literal('removed') }),
    errors: ['binding_not_found'],
    handle: async (input) => (await host()).handlers.removeBinding(input),
  })
}
