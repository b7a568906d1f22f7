import * as v from 'valibot'
import { findNearest, suggest } from 'svc/internal'
import { defineRoute, line, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import { MatchRule } from './bindings.ts'
import type { Bindings } from './bindings.ts'

const Binding = v.object({ agent: v.string(), match_rule: MatchRule })
const example = { agent: 'assistant', match_rule: { channel: 'telegram', peer_id: '4711' } }

export interface BindingRoutesDeps {
  readonly bindings: Bindings
  readonly agents: Pick<Agents, 'find' | 'findByName' | 'list'>
}

/** Which agent answers whom on the channels. */
export function bindingRoutes(deps: BindingRoutesDeps): readonly AnyRoute[] {
  return [listRoute(deps), addRoute(deps), removeRoute(deps)]
}

function listRoute({ bindings }: BindingRoutesDeps): AnyRoute {
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
    async handle() {
      const all = await bindings.list()
      return { bindings: all.map(({ agent, match_rule }) => ({ agent, match_rule })) }
    },
  })
}

function addRoute({ bindings, agents }: BindingRoutesDeps): AnyRoute {
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
    example: { body: example, returns: { status: 'created' } },
    async handle({ body }) {
      const agent = (await agents.findByName(body.agent)) ?? (await findById(agents, body.agent))
      if (!agent) {
        const names = (await agents.list()).map(({ name }) => name)
        throw new Refusal(
          'agent_not_found',
          `There is no agent "${body.agent}"${suggest(findNearest(body.agent, names))}`,
        )
      }
      await bindings.add(body.agent, body.match_rule)
      return { status: 'created' as const }
    },
  })
}

function removeRoute({ bindings }: BindingRoutesDeps): AnyRoute {
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
    async handle({ params }) {
      await bindings.remove(params.index)
      return { status: 'removed' as const }
    },
  })
}

function findById(agents: Pick<Agents, 'find'>, id: string) {
  return /^[0-9a-f-]{36}$/i.test(id) ? agents.find(id) : Promise.resolve(undefined)
}
