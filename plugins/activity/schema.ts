import * as v from 'valibot'
import type { Level } from './level.ts'

const whole = (max: number, fallback: number) =>
  v.optional(
    v.pipe(
      v.string(),
      v.regex(/^\d{1,7}$/, `must be a whole number from 1 to ${max}`),
      v.transform(Number),
      v.minValue(1, `must be a whole number from 1 to ${max}`),
      v.maxValue(max, `must be a whole number from 1 to ${max}`),
    ),
    String(fallback),
  )

export const TracesQuery = v.object({ limit: whole(1000, 100) })
export const DeliveriesQuery = v.object({ limit: whole(500, 50) })
export const LogsQuery = v.object({
  n: whole(1000, 100),
  level: v.optional(v.picklist(['error', 'warn', 'info'] as const satisfies readonly Level[])),
  offset: v.optional(
    v.pipe(v.string(), v.regex(/^\d{1,7}$/, 'must be a whole number from 0 to 9999999'), v.transform(Number)),
    '0',
  ),
})

const count = v.number()
const text = v.string()
export const Traces = v.object({
  agent_id: text,
  count,
  traces: v.array(
    v.object({
      id: text,
      turn_id: text,
      session_id: text,
      kind: v.picklist(['model', 'tool']),
      name: text,
      iteration: count,
      started_at: text,
      duration_ms: count,
      first_token_ms: v.nullable(count),
      input_tokens: v.nullable(count),
      output_tokens: v.nullable(count),
      failed: v.boolean(),
      input: text,
      output_summary: text,
      // Those of a tool call under the names existing clients read.
      tool_use_id: v.optional(text),
      tool_name: v.optional(text),
      execution_ms: v.optional(count),
      is_error: v.optional(v.boolean()),
      timestamp: text,
    }),
  ),
})

/** Milliseconds; null when nothing was measured. */
const Latency = v.object({
  count,
  avg: v.nullable(count),
  p50: v.nullable(count),
  p90: v.nullable(count),
  p95: v.nullable(count),
  p99: v.nullable(count),
  max: v.nullable(count),
})
export const Metrics = v.object({
  agent_id: text,
  name: text,
  state: text,
  uptime_secs: count,
  message_count: count,
  turns: v.record(v.string(), count),
  token_usage: v.object({
    session_tokens: count,
    total_input_tokens: count,
    total_output_tokens: count,
    total_tokens: count,
  }),
  tool_calls: v.object({ total_tool_calls: count, failed_tool_calls: count }),
  cost_usd: count,
  /** Calls of models whose price is not known, which `cost_usd` leaves out. */
  unpriced_calls: count,
  call_count: count,
  error_count: count,
  /** Of the turns that ended, from 0 to 1. */
  error_rate: count,
  avg_response_time_ms: v.nullable(count),
  latency_ms: v.object({ model: Latency, first_token: Latency, tool: Latency }),
})

export const Logs = v.object({
  agent_id: text,
  count,
  offset: count,
  logs: v.array(
    v.object({
      seq: count,
      timestamp: text,
      level: v.picklist(['error', 'warn', 'info']),
      action: text,
      detail: text,
      outcome: v.picklist(['ok', 'error', 'denied']),
    }),
  ),
})

export const Deliveries = v.object({
  agent_id: text,
  count,
  receipts: v.array(
    v.object({
      message_id: text,
      channel: text,
      recipient: text,
      status: v.picklist(['sent', 'failed', 'best_effort']),
      timestamp: text,
      error: v.nullable(text),
    }),
  ),
})
