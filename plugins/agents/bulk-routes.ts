import * as v from 'valibot'
import { defineRoute, parse, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { AgentParams } from './contract.ts'
import { NewAgent } from './schema.ts'
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

/** What one costs by itself. */
const SPAWN_COST = 50
const EACH_COST = 5
const itemsOf = (body: readonly unknown[] | Readonly<Record<string, readonly unknown[]>>): number =>
  (Array.isArray(body) ? body : Object.values(body).flat()).length

export function bulkRoutes(agents: AgentService, most: number): readonly AnyRoute[] {
  const many = v.pipe(
    v.array(v.unknown()),
    v.minLength(1, 'must not be empty'),
    v.maxLength(most, `at most ${most} (plugins.agents.max_bulk)`),
  )
  // Each item is checked on its own, so that a wrong one fails alone.
  const Spawns = v.union(
    [v.object({ agents: many }), many],
    `agents: Expected a list of 1 to ${most} agents, at most ${most} (plugins.agents.max_bulk)`,
  )
  const Ids = v.union(
    [v.object({ agent_ids: many }), many],
    `agent_ids: Expected a list of 1 to ${most} agent ids, at most ${most} (plugins.agents.max_bulk)`,
  )
  const spawn = defineRoute({
    method: 'POST',
    path: '/api/agents/bulk',
    summary: `Spawn up to ${most} agents`,
    description: `Each item is a body of POST /api/agents, and costs ${SPAWN_COST} of the rate limit besides. One that fails does not keep the others from being made.`,
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    costOf: (body) => itemsOf(body) * SPAWN_COST,
    body: Spawns,
    returns: Spawned,
    errors: ['payload_too_large'],
    example: { body: { agents: [{ manifest_toml: 'name = "scribe"\n' }] } },
    async handle({ body }) {
      const results = []
      // One after the other, so that they are listed in this order.
      for (const [index, item] of (Array.isArray(body) ? body : body.agents).entries()) {
        results.push(
          await attempt({ index }, async () => {
            const wanted = parse(NewAgent, item, 'agent')
            const { toml, signedBy } = await agents.open(wanted)
            const agent = await agents.spawn(toml, { name: wanted.name, signedBy })
            return { agent_id: agent.id, name: agent.name }
          }),
        )
      }
      return summed(results)
    },
  })

  const each = (
    method: 'POST' | 'DELETE',
    path: `/${string}`,
    summary: string,
    description: string,
    act: (id: string) => Promise<string>,
  ): AnyRoute =>
    defineRoute({
      method,
      path,
      summary,
      description: `${description} The body is \`{agent_ids: [...]}\` or the list alone; each costs ${EACH_COST} of the rate limit besides. One that fails does not keep the others from it.`,
      auth: 'bearer',
      effect: 'lasting',
      cost: 5,
      costOf: (body) => itemsOf(body) * EACH_COST,
      body: Ids,
      returns: Done,
      async handle({ body }) {
        return summed(
          await Promise.all(
            (Array.isArray(body) ? body : body.agent_ids).map((item) =>
              attempt({ agent_id: typeof item === 'string' ? item.slice(0, 256) : '' }, async () => ({
                message: await act(parse(AgentParams, { id: item }, 'agent_ids').id),
              })),
            ),
          ),
        )
      },
    })

  return [
    spawn,
    each('DELETE', '/api/agents/bulk', `Kill up to ${most} agents`, 'Removes them for good.', async (id) => {
      if (!(await agents.kill(id))) throw new Refusal('agent_not_found', `No agent ${id}`)
      return 'Deleted'
    }),
    each(
      'POST',
      '/api/agents/bulk/start',
      `Start up to ${most} agents`,
      'An agent that runs already stays as it is; one that is paused is to be resumed instead.',
      async (id) => ((await agents.command(id, 'start')).moved ? 'Started' : 'Running already'),
    ),
    each(
      'POST',
      '/api/agents/bulk/stop',
      `Stop up to ${most} agents`,
      'Cancels what they do; they take no messages until they are started.',
      async (id) => ((await agents.command(id, 'stop')).moved ? 'Stopped' : 'Stopped already'),
    ),
  ]
}

async function attempt<K extends object, R extends object>(
  key: K,
  act: () => Promise<R>,
): Promise<K & { success: boolean; error?: string } & Partial<R>> {
  try {
    return { ...key, success: true, ...(await act()) }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { ...key, success: false, error: error.message }
  }
}

function summed<R extends { readonly success: boolean }>(
  results: R[],
): { total: number; succeeded: number; failed: number; results: R[] } {
  const succeeded = results.filter(({ success }) => success).length
  return { total: results.length, succeeded, failed: results.length - succeeded, results }
}
