import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute, Spawn } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Runtime } from './runtime.ts'
import type { Settings } from './config.ts'
import * as schema from './schema.ts'

export interface RouteDeps {
  readonly agents: Pick<Agents, 'find'>
  readonly settings: Settings
  readonly spawn: Spawn
  /** `undefined` while no agent has used a browser. */
  opened(): Promise<Runtime> | undefined
}

export function browserRoutes(deps: RouteDeps): readonly AnyRoute[] {
  const list = defineRoute({
    auth: 'bearer',
    effect: 'read',
    cost: 2,
    method: 'GET',
    path: '/api/browser/sessions',
    summary: 'The browsers that agents have open at this daemon',
    returns: schema.BrowserList,
    handle: async () => {
      const views = (await deps.opened())?.browsers.list() ?? []
      const sessions = await Promise.all(
        views.map(async ({ agentId, url, title, startedAt, lastUsedAt }) => ({
          agent_id: agentId,
          agent_name: (await deps.agents.find(agentId))?.name ?? '',
          url,
          title,
          started_at: startedAt,
          last_used_at: lastUsedAt,
        })),
      )
      const total = sessions.length
      return { sessions, total, max_sessions: deps.settings.max_sessions, ...(await readiness(deps)) }
    },
  })
  const close = defineRoute({
    auth: 'bearer',
    effect: 'conversation',
    cost: 5,
    method: 'DELETE',
    path: '/api/browser/sessions/:agent_id',
    summary: 'Close the browser of an agent',
    description: 'Its cookies and open pages are gone; the agent can open another.',
    params: schema.BrowserParams,
    returns: schema.Closed,
    errors: ['not_found'],
    handle: async ({ params: { agent_id: agentId } }) => {
      const runtime = await deps.opened()
      if (!(await runtime?.browsers.close(agentId, 'somebody closed it over the API')))
        throw new Refusal('not_found', `Agent ${agentId} has no browser open at this daemon`)
      return { status: 'closed' as const, agent_id: agentId }
    },
  })
  return [list, close]
}

async function readiness({ settings, spawn }: RouteDeps) {
  const { findChromium, requireIsolation } = await import('./chromium.ts')
  try {
    await requireIsolation(spawn)
    return { chromium: (await findChromium(spawn, settings.chromium_path)).path, problem: null }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return { chromium: null, problem: error.message }
  }
}
