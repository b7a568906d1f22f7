import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { AgentParams } from '../agents/contract.ts'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Journal } from '../journal/contract.ts'
import type { UsageLedger } from '../usage/contract.ts'
import { MAX_SCANNED, MAX_STEPS } from './limits.ts'
import { Deliveries, DeliveriesQuery, Logs, LogsQuery, Metrics, Traces, TracesQuery } from './schema.ts'

export interface ActivityDeps {
  readonly agents: Agents
  readonly audit: Audit
  readonly journal: Journal
  /** Called for each request: the plugin may be reloaded, or missing. */
  readonly usage: () => UsageLedger | undefined
  readonly now: () => number
}

/** What a request needs beyond the names and schemas, loaded by the first one. */
const load = () => import('./read.ts')

export function activityRoutes(deps: ActivityDeps): readonly AnyRoute[] {
  return [tracesRoute(deps), metricsRoute(deps), logsRoute(deps), deliveriesRoute(deps)]
}

function tracesRoute({ agents, journal }: ActivityDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/agents/:id/traces',
    summary: 'The activity of an agent, step by step',
    description: 'Each call of a model and of a tool with its time and tokens, newest first.',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: AgentParams,
    query: TracesQuery,
    returns: Traces,
    errors: ['agent_not_found'],
    async handle({ params, query }) {
      const { id } = await agents.require(params.id)
      const found = await journal.traces(id, query.limit)
      return { agent_id: id, count: found.length, traces: found.map((await load()).toTrace) }
    },
  })
}

function metricsRoute(deps: ActivityDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/agents/:id/metrics',
    summary: 'Tokens, latencies and errors of an agent',
    description:
      "Tokens and costs cover the agent's whole life, turns and tool calls the entries still in the journal, " +
      `latencies of its newest ${MAX_STEPS} steps.`,
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: AgentParams,
    returns: Metrics,
    errors: ['agent_not_found'],
    async handle({ params }) {
      return (await load()).measure(deps, await deps.agents.require(params.id))
    },
  })
}

function logsRoute({ agents, audit }: ActivityDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/agents/:id/logs',
    summary: 'The newest entries of the audit log about an agent',
    description: `Newest first. With \`level\` only those of it, among the newest ${MAX_SCANNED}.`,
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: AgentParams,
    query: LogsQuery,
    returns: Logs,
    errors: ['agent_not_found'],
    async handle({ params, query }) {
      const { id } = await agents.require(params.id)
      const { readNewest, toLog } = await load()
      const found = await readNewest(audit, id, query.offset + query.n, query.level)
      const entries = found.slice(query.offset)
      return {
        agent_id: id,
        count: entries.length,
        offset: query.offset,
        logs: entries.map(toLog),
      }
    },
  })
}

function deliveriesRoute({ agents, journal }: ActivityDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/agents/:id/deliveries',
    summary: 'The messages an agent sent out, and whether they arrived',
    description: 'Newest first. `best_effort`: the outcome is unknown.',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: AgentParams,
    query: DeliveriesQuery,
    returns: Deliveries,
    errors: ['agent_not_found'],
    async handle({ params, query }) {
      const { id } = await agents.require(params.id)
      const { toReceipt } = await load()
      const receipts = (await journal.sends(id, query.limit)).map(toReceipt)
      return { agent_id: id, count: receipts.length, receipts }
    },
  })
}
