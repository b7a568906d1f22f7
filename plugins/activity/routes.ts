import * as v from 'valibot'
import { defineRoute, readJson } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { AgentParams } from '../agents/contract.ts'
import type { Agents } from '../agents/contract.ts'
import type { Audit, AuditEntry } from '../audit/contract.ts'
import type { Journal, Send, Trace } from '../journal/contract.ts'
import type { UsageLedger } from '../usage/contract.ts'
import { latencyOf } from './latency.ts'
import { levelOf, outcomeOf } from './level.ts'
import type { Level } from './level.ts'
import { Deliveries, DeliveriesQuery, Logs, LogsQuery, Metrics, Traces, TracesQuery } from './schema.ts'

export interface ActivityParts {
  readonly agents: Agents
  readonly audit: Audit
  readonly journal: Journal
  /** Asked for each time: it may be reloaded, or missing. */
  readonly usage: () => UsageLedger | undefined
  readonly now: () => number
}

const MEASURED = 1000
/** Entries of the log that one request looks at, at most. */
const SCANNED = 10_000
const PAGE = 500

export function activityRoutes({ agents, audit, journal, usage, now }: ActivityParts): readonly AnyRoute[] {
  const traces = defineRoute({
    method: 'GET',
    path: '/api/agents/:id/traces',
    summary: 'What an agent did, step by step',
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
      return { agent_id: id, count: found.length, traces: found.map(toTrace) }
    },
  })

  const metrics = defineRoute({
    method: 'GET',
    path: '/api/agents/:id/metrics',
    summary: 'Tokens, latencies and errors of an agent',
    description: `Tokens and costs are of the agent's whole life, turns and tool calls of what the journal still holds, latencies of its newest ${MEASURED} steps.`,
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: AgentParams,
    returns: Metrics,
    errors: ['agent_not_found'],
    async handle({ params }) {
      const agent = await agents.require(params.id)
      const ledger = usage()
      const [counts, steps, total, session] = await Promise.all([
        journal.counts(agent.id),
        journal.traces(agent.id, MEASURED),
        ledger?.totals(agent.id),
        ledger?.totals(agent.id, agent.sessionId),
      ])
      const { done = 0, failed = 0, interrupted = 0, cancelled = 0 } = counts.turns
      const ended = done + failed + interrupted + cancelled
      const model = latencyOf(steps.filter(({ kind }) => kind === 'model').map((step) => step.durationMs))
      return {
        agent_id: agent.id,
        name: agent.name,
        state: agent.state,
        uptime_secs: Math.max(0, Math.floor((now() - Date.parse(agent.createdAt)) / 1000)),
        message_count: Object.values(counts.turns).reduce((sum, n) => sum + n, 0),
        turns: { ...counts.turns },
        token_usage: {
          session_tokens: (session?.inputTokens ?? 0) + (session?.outputTokens ?? 0),
          total_input_tokens: total?.inputTokens ?? 0,
          total_output_tokens: total?.outputTokens ?? 0,
          total_tokens: (total?.inputTokens ?? 0) + (total?.outputTokens ?? 0),
        },
        tool_calls: { total_tool_calls: counts.toolCalls, failed_tool_calls: counts.failedToolCalls },
        cost_usd: total?.costUsd ?? 0,
        unpriced_calls: total?.unpriced ?? 0,
        call_count: total?.calls ?? 0,
        error_count: failed + interrupted,
        error_rate: ended === 0 ? 0 : (failed + interrupted) / ended,
        avg_response_time_ms: model.avg,
        latency_ms: {
          model,
          first_token: latencyOf(steps.flatMap(({ firstMs }) => (firstMs === undefined ? [] : [firstMs]))),
          tool: latencyOf(steps.filter(({ kind }) => kind === 'tool').map((step) => step.durationMs)),
        },
      }
    },
  })

  const logs = defineRoute({
    method: 'GET',
    path: '/api/agents/:id/logs',
    summary: 'The newest entries of the audit log about an agent',
    description: `Newest first. With \`level\` only those of it, among the newest ${SCANNED}.`,
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: AgentParams,
    query: LogsQuery,
    returns: Logs,
    errors: ['agent_not_found'],
    async handle({ params, query }) {
      const { id } = await agents.require(params.id)
      const found = await newest(audit, id, query.offset + query.n, query.level)
      const entries = found.slice(query.offset)
      return {
        agent_id: id,
        count: entries.length,
        offset: query.offset,
        logs: entries.map((entry) => ({
          seq: entry.id,
          timestamp: entry.timestamp,
          level: levelOf(entry.event, entry.details),
          action: entry.event,
          detail: entry.details,
          outcome: outcomeOf(entry.event, entry.details),
        })),
      }
    },
  })

  const deliveries = defineRoute({
    method: 'GET',
    path: '/api/agents/:id/deliveries',
    summary: 'What an agent sent out, and whether it arrived',
    description: 'Newest first. `best_effort` is what nobody could say the outcome of.',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: AgentParams,
    query: DeliveriesQuery,
    returns: Deliveries,
    errors: ['agent_not_found'],
    async handle({ params, query }) {
      const { id } = await agents.require(params.id)
      const receipts = (await journal.sends(id, query.limit)).map(toReceipt)
      return { agent_id: id, count: receipts.length, receipts }
    },
  })

  return [traces, metrics, logs, deliveries]
}

function toTrace(trace: Trace): v.InferOutput<typeof Traces>['traces'][number] {
  const failed = trace.failed
  return {
    id: trace.id,
    turn_id: trace.turnId,
    session_id: trace.sessionId,
    kind: trace.kind,
    name: trace.name,
    iteration: trace.iteration,
    started_at: trace.startedAt,
    duration_ms: trace.durationMs,
    first_token_ms: trace.firstMs ?? null,
    input_tokens: trace.tokens?.input ?? null,
    output_tokens: trace.tokens?.output ?? null,
    failed,
    input: trace.input,
    output_summary: trace.output,
    timestamp: trace.startedAt,
    ...(trace.kind === 'tool'
      ? { tool_use_id: trace.callId ?? '', tool_name: trace.name, execution_ms: trace.durationMs, is_error: failed }
      : {}),
  }
}

async function newest(
  audit: Audit,
  agentId: string,
  wanted: number,
  level: Level | undefined,
): Promise<readonly AuditEntry[]> {
  const found: AuditEntry[] = []
  let before: number | undefined
  for (let scanned = 0; found.length < wanted && scanned < SCANNED; scanned += PAGE) {
    const page = await audit.entries(agentId, { limit: PAGE, ...(before === undefined ? {} : { before }) })
    found.push(...page.filter((entry) => level === undefined || levelOf(entry.event, entry.details) === level))
    before = page.at(-1)?.id
    if (page.length < PAGE) break
  }
  return found.slice(0, wanted)
}

const Target = v.fallback(
  v.object({
    channel: v.optional(v.string()),
    recipient: v.optional(v.string()),
    to: v.optional(v.string()),
    message_id: v.optional(v.string()),
  }),
  {},
)

function toReceipt(send: Send): v.InferOutput<typeof Deliveries>['receipts'][number] {
  const target = v.parse(Target, json(send.input))
  return {
    message_id: target.message_id ?? send.key,
    channel: target.channel ?? send.name,
    recipient: target.recipient ?? target.to ?? '',
    status: send.state === 'done' ? 'sent' : send.state === 'failed' ? 'failed' : 'best_effort',
    timestamp: send.settledAt ?? send.createdAt,
    error: send.state === 'failed' ? (send.result ?? '') : null,
  }
}

function json(text: string): unknown {
  // Written by whoever sends; a receipt is shown even if that was no JSON.
  try {
    return readJson(text)
  } catch {
    return undefined
  }
}
