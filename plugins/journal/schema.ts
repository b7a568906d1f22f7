import * as v from 'valibot'
import type { ErrorCode } from 'svc/sdk'

export const States = ['queued', 'running', 'waiting', 'done', 'failed', 'cancelled', 'interrupted'] as const
const entryPoints = [
  'rest',
  'sse',
  'websocket',
  'openai',
  'cli',
  'channel',
  'agent',
  'schedule',
  'trigger',
  'task',
  'workflow',
  'hook',
  'a2a',
  'mcp',
  'peer',
] as const

const Failure = v.object({
  code: v.custom<ErrorCode>((code) => typeof code === 'string'),
  message: v.string(),
  retryable: v.boolean(),
  retryAfterSecs: v.exactOptional(v.number()),
})
export const TurnRow = v.object({
  id: v.string(),
  agent_id: v.string(),
  session_id: v.string(),
  entry_point: v.picklist(entryPoints),
  state: v.picklist(States),
  on_crash: v.picklist(['resume', 'interrupt']),
  owner: v.string(),
  options: v.string(),
  error: v.nullable(v.string()),
  failure: v.nullable(v.pipe(v.string(), v.parseJson(), Failure)),
  created_at: v.string(),
  on_behalf: v.nullable(v.pipe(v.string(), v.parseJson(), v.array(v.string()))),
})
export type TurnRow = v.InferOutput<typeof TurnRow>

export const EffectRow = v.object({
  key: v.string(),
  turn_id: v.string(),
  kind: v.picklist(['tool', 'send', 'webhook']),
  name: v.string(),
  state: v.picklist(['intent', 'done', 'failed', 'unknown']),
  input: v.string(),
  result: v.nullable(v.string()),
})
export type EffectRow = v.InferOutput<typeof EffectRow>

export const TraceRow = v.object({
  agent_id: v.string(),
  id: v.string(),
  session_id: v.string(),
  turn_id: v.string(),
  kind: v.picklist(['model', 'tool']),
  name: v.string(),
  call_id: v.nullable(v.string()),
  iteration: v.number(),
  started_at: v.string(),
  duration_ms: v.number(),
  first_ms: v.nullable(v.number()),
  failed: v.number(),
  input_tokens: v.nullable(v.number()),
  output_tokens: v.nullable(v.number()),
  input: v.string(),
  output: v.string(),
})
export type TraceRow = v.InferOutput<typeof TraceRow>

/** What a turn's row holds of a trace. */
const KeptTrace = v.object({
  id: v.string(),
  kind: v.picklist(['model', 'tool']),
  name: v.string(),
  callId: v.optional(v.string()),
  iteration: v.number(),
  startedAt: v.string(),
  durationMs: v.number(),
  firstMs: v.optional(v.number()),
  failed: v.boolean(),
  tokens: v.optional(v.object({ input: v.number(), output: v.number() })),
  input: v.string(),
  output: v.string(),
})
export const EndedRow = v.object({
  id: v.string(),
  session_id: v.string(),
  traces: v.pipe(v.string(), v.parseJson(), v.array(KeptTrace)),
})
export type EndedRow = v.InferOutput<typeof EndedRow>

export const SendRow = v.object({ ...EffectRow.entries, created_at: v.string(), settled_at: v.nullable(v.string()) })
export type SendRow = v.InferOutput<typeof SendRow>
/** PostgreSQL counts in 64 bits, which its driver may hand over as text. */
const Count = v.pipe(v.union([v.number(), v.string(), v.bigint()]), v.transform(Number))
export const CountRow = v.object({ state: v.picklist([...States, 'intent', 'unknown']), n: Count })
/** An instance that has open turns, and how often it has counted. */
export const OwnerCount = v.object({ owner: v.string(), count: Count })
export const HeartbeatRow = v.object({ id: v.string(), beats: Count })
export type CountRow = v.InferOutput<typeof CountRow>
