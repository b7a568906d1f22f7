import type { ErrorCode } from 'svc/sdk'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { Job, Slot } from './job.ts'
import type { Runtime } from './runtime.ts'
import { toCronJob, toSlot } from './views.ts'

export { MEASURED } from './views.ts'

const MAX_LIMIT = 1_000
const DEFAULT_LIMIT = 500
const DEFAULT_SLOTS = 50

interface Query {
  readonly agent_id?: string | undefined
  readonly enabled?: string | undefined
  readonly ended?: string | undefined
  readonly limit?: string | undefined
  readonly offset?: string | undefined
}

export async function list(runtime: Runtime, query: Query) {
  const limit = Math.min(Number(query.limit ?? DEFAULT_LIMIT), MAX_LIMIT)
  const enabled = query.enabled === undefined ? undefined : query.enabled === 'true'
  const filter = { agentId: query.agent_id, enabled, ended: query.ended === 'true' }
  return runtime.schedules.list(filter, limit, Number(query.offset ?? 0))
}
/** The last result and the next time (API facts 2.5). */
export async function status(runtime: Runtime, code: ErrorCode, id: string) {
  const job = toCronJob(await runtime.schedules.require(code, id))
  const [slot] = await history(runtime, code, id, { limit: '1' })
  const { one_shot, last_status, consecutive_errors, last_run, next_run } = job
  return { job, one_shot, last_status, consecutive_errors, last_run, next_run, last_slot: slot ?? null }
}
export async function history(
  runtime: Runtime,
  code: ErrorCode,
  id: string,
  { before, limit }: { readonly before?: string | undefined; readonly limit?: string | undefined },
) {
  const until = before === undefined ? undefined : Date.parse(before)
  const max = Math.min(Number(limit ?? DEFAULT_SLOTS), MAX_LIMIT)
  return (await runtime.schedules.history(code, id, until, max)).map(toSlot)
}
/** The answer to "run now" (API facts 4.2). */
export async function runNow(
  runtime: Runtime,
  code: ErrorCode,
  id: string,
  { signal, effectId }: { readonly signal: AbortSignal; readonly effectId?: string | undefined },
) {
  const job = await runtime.schedules.require(code, id)
  return toAnswer(job, await runtime.manual.run(job, signal, effectId))
}
/** The answer of a run that was asked for with this id. `undefined` when it never began. */
export async function recallRun(
  runtime: Runtime,
  code: ErrorCode,
  id: string,
  { signal, effectId }: { readonly signal: AbortSignal; readonly effectId: string },
) {
  const job = await runtime.schedules.require(code, id)
  const slot = await runtime.manual.find(job, signal, effectId)
  return slot && toAnswer(job, slot)
}
function toAnswer({ id, agentId, action }: Job, slot: Slot) {
  const { state, result = '', error = '', turnId, workflowRunId: runId, reason, detail } = slot
  if (state === 'skipped') throw new Refusal('conflict', `The run was skipped (${reason}): ${detail}`)
  const ids = { schedule_id: id, agent_id: agentId, turn_id: turnId ?? null }
  // API facts 4.2.
  const run = action.kind === 'workflow' ? { workflow_id: action.workflow_id, output: result } : {}
  return state === 'done'
    ? {
        isDone: true as const,
        answer: { status: 'completed', ...ids, ...run, ...omitUndefined({ run_id: runId }), response: result },
      }
    : { isDone: false as const, answer: { status: 'failed', ...ids, error } }
}
