import * as v from 'valibot'
import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { AgentService } from './service.ts'

const counts = { total: v.number(), succeeded: v.number(), failed: v.number() }
const Spawned = v.object({
  ...counts,
  results: v.array(
    v.object({
      index: v.number(),
      success: v.boolean(),
      agent_id: v.optional(v.string()),
      name: v.optional(v.string()),
      error: v.optional(v.string()),
    }),
  ),
})
const Done = v.object({
  ...counts,
  results: v.array(
    v.object({
      agent_id: v.string(),
      success: v.boolean(),
      message: v.optional(v.string()),
      error: v.optional(v.string()),
    }),
  ),
})

/** Of the rate limit, for each agent. */
const SPAWN_COST = 50
const EACH_COST = 5
function itemsOf(body: readonly unknown[] | Readonly<Record<string, readonly unknown[]>>): readonly unknown[] {
  return Array.isArray(body) ? body : Object.values(body).flat()
}

/** Each item is checked on its own, so that an invalid one fails alone. */
function itemsSchema<K extends 'agents' | 'agent_ids'>(key: K, what: string, max: number) {
  const items = v.pipe(
    v.array(v.unknown()),
    v.minLength(1, 'must not be empty'),
    v.maxLength(max, `at most ${max} (plugins.agents.max_bulk)`),
  )
  return v.union(
    [v.object({ [key]: items } as Record<K, typeof items>), items],
    `${key}: Expected a list of 1 to ${max} ${what}, at most ${max} (plugins.agents.max_bulk)`,
  )
}

export function bulkRoutes(agents: AgentService, max: number): readonly AnyRoute[] {
  return [
    spawnRoute(agents, max),
    eachRoute({
      method: 'DELETE',
      path: '/api/agents/bulk',
      max,
      summary: `Kill up to ${max} agents`,
      description: 'Removes them for good.',
      async act(id) {
        if (!(await agents.kill(id))) throw new Refusal('agent_not_found', `No agent ${id}`)
        return 'Deleted'
      },
    }),
    eachRoute({
      method: 'POST',
      path: '/api/agents/bulk/start',
      max,
      summary: `Start up to ${max} agents`,
      description: 'An agent that runs already stays as it is; one that is paused is to be resumed instead.',
      act: async (id) => ((await agents.command(id, 'start')).moved ? 'Started' : 'Running already'),
    }),
    eachRoute({
      method: 'POST',
      path: '/api/agents/bulk/stop',
      max,
      summary: `Stop up to ${max} agents`,
      description: 'Cancels their turns; they accept no messages until they are started.',
      act: async (id) => ((await agents.command(id, 'stop')).moved ? 'Stopped' : 'Stopped already'),
    }),
  ]
}

function spawnRoute(agents: AgentService, max: number): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/api/agents/bulk',
    summary: `Spawn up to ${max} agents`,
    description:
      `Each item is a body of POST /api/agents, and costs ${SPAWN_COST} of the rate limit besides. ` +
      'The others are created even when one fails.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    costOf: (body) => itemsOf(body).length * SPAWN_COST,
    body: itemsSchema('agents', 'agents', max),
    returns: Spawned,
    errors: ['payload_too_large'],
    idempotent: true,
    example: { body: { agents: [{ manifest_toml: 'name = "scribe"\n' }] } },
    handle: async ({ body, effectId }) => (await import('./bulk.ts')).spawnEach(agents, itemsOf(body), effectId),
  })
}

interface BulkAction {
  readonly method: 'POST' | 'DELETE'
  readonly path: `/${string}`
  readonly max: number
  readonly summary: string
  readonly description: string
  /** Returns what was done. */
  readonly act: (id: string) => Promise<string>
}
function eachRoute({ method, path, max, summary, description, act }: BulkAction): AnyRoute {
  return defineRoute({
    method,
    path,
    summary,
    description:
      `${description} The body is \`{agent_ids: [...]}\` or the list alone; each costs ${EACH_COST} of the rate ` +
      'limit ' +
      'besides. One that fails does not keep the others from it.',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    costOf: (body) => itemsOf(body).length * EACH_COST,
    body: itemsSchema('agent_ids', 'agent ids', max),
    returns: Done,
    handle: async ({ body }) => (await import('./bulk.ts')).doEach(itemsOf(body), act),
  })
}
