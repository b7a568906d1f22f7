import * as v from 'valibot'
import { omitUndefined, readJson } from 'svc/sdk'
import type { Agent } from '../agents/contract.ts'
import type { Audit, AuditEntry } from '../audit/contract.ts'
import type { Counts, Send, Trace } from '../journal/contract.ts'
import type { UsageTotals } from '../usage/contract.ts'
import { latencyOf } from './latency.ts'
import { levelOf, outcomeOf } from './level.ts'
import type { Level } from './level.ts'
import { MAX_SCANNED, MAX_STEPS } from './limits.ts'
import type { ActivityDeps } from './routes.ts'
import type { Deliveries, Logs, Traces } from './schema.ts'

const PAGE = 500

export async function measure({ journal, usage, now }: ActivityDeps, agent: Agent) {
  const ledger = usage()
  const [counts, steps, total, session] = await Promise.all([
    journal.counts(agent.id),
    journal.traces(agent.id, MAX_STEPS),
    ledger?.totals(agent.id),
    ledger?.totals(agent.id, agent.sessionId),
  ])
  const model = latencyOf(steps.filter(({ kind }) => kind === 'model').map((step) => step.durationMs))
  return {
    agent_id: agent.id,
    name: agent.name,
    state: agent.state,
    uptime_secs: Math.max(0, Math.floor((now() - Date.parse(agent.createdAt)) / 1000)),
    message_count: Object.values(counts.turns).reduce((sum, n) => sum + n, 0),
    turns: { ...counts.turns },
    ...toUsage(total, session),
    tool_calls: { total_tool_calls: counts.toolCalls, failed_tool_calls: counts.failedToolCalls },
    ...toErrors(counts.turns),
    avg_response_time_ms: model.avg,
    latency_ms: {
      model,
      first_token: latencyOf(steps.flatMap(({ firstMs }) => (firstMs === undefined ? [] : [firstMs]))),
      tool: latencyOf(steps.filter(({ kind }) => kind === 'tool').map((step) => step.durationMs)),
    },
  }
}
function toUsage(total: UsageTotals | undefined, session: UsageTotals | undefined) {
  return {
    token_usage: {
      session_tokens: (session?.inputTokens ?? 0) + (session?.outputTokens ?? 0),
      total_input_tokens: total?.inputTokens ?? 0,
      total_output_tokens: total?.outputTokens ?? 0,
      total_tokens: (total?.inputTokens ?? 0) + (total?.outputTokens ?? 0),
    },
    cost_usd: total?.costUsd ?? 0,
    unpriced_calls: total?.unpriced ?? 0,
    call_count: total?.calls ?? 0,
  }
}
function toErrors({ done = 0, failed = 0, interrupted = 0, cancelled = 0 }: Counts['turns']) {
  const ended = done + failed + interrupted + cancelled
  return { error_count: failed + interrupted, error_rate: ended === 0 ? 0 : (failed + interrupted) / ended }
}

export function toLog({ id, timestamp, event, details }: AuditEntry): v.InferOutput<typeof Logs>['logs'][number] {
  return {
    seq: id,
    timestamp,
    level: levelOf(event, details),
    action: event,
    detail: details,
    outcome: outcomeOf(event, details),
  }
}

export function toTrace(trace: Trace): v.InferOutput<typeof Traces>['traces'][number] {
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

export async function readNewest(
  audit: Audit,
  agentId: string,
  limit: number,
  level: Level | undefined,
): Promise<readonly AuditEntry[]> {
  const found: AuditEntry[] = []
  let before: number | undefined
  for (let scanned = 0; found.length < limit && scanned < MAX_SCANNED; scanned += PAGE) {
    const page = await audit.entries(agentId, { limit: PAGE, ...omitUndefined({ before }) })
    found.push(...page.filter((entry) => level === undefined || levelOf(entry.event, entry.details) === level))
    before = page.at(-1)?.id
    if (page.length < PAGE) break
  }
  return found.slice(0, limit)
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

export function toReceipt(send: Send): v.InferOutput<typeof Deliveries>['receipts'][number] {
  const target = v.parse(Target, json(send.input))
  return {
    message_id: target.message_id ?? send.key,
    channel: target.channel ?? send.name,
    recipient: target.recipient ?? target.to ?? '',
    status: statusOf(send),
    timestamp: send.settledAt ?? send.createdAt,
    error: send.state === 'failed' ? (send.result ?? '') : null,
  }
}

/** `best_effort`: nobody knows whether it arrived, or whether it arrived once. */
function statusOf({ state, result }: Send): v.InferOutput<typeof Deliveries>['receipts'][number]['status'] {
  if (state === 'failed') return 'failed'
  return state === 'done' && result !== 'best_effort' ? 'sent' : 'best_effort'
}

function json(text: string): unknown {
  // The sending plugin wrote this text: a receipt is shown even when it is no JSON.
  try {
    return readJson(text)
  } catch {
    return undefined
  }
}
