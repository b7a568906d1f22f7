import { toIso } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { ToolCallContext } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import { textOf } from '../job.ts'
import type { Job } from '../job.ts'
import type { Runtime } from '../runtime.ts'

const MAX_LISTED = 200

type Caller = Pick<ToolCallContext, 'agentId' | 'labels' | 'onBehalf' | 'hops'>

/** Who a job of an agent is for: the agent itself, or one that its manifest lets it write to. */
export async function targetOf(agents: Agents, caller: string, name: string | undefined): Promise<string> {
  if (name === undefined || name === '') return caller
  const [from, target] = await Promise.all([agents.require(caller), agents.resolve(name)])
  if (target.id === caller || agents.mayMessage(from, target)) return target.id
  throw new Refusal(
    'forbidden',
    `This agent may not make schedules for "${name}": capabilities.agent_message of its manifest does not name it.`,
  )
}

/** Where the words of a job come from that an agent makes. */
export function authorOf({ agentId, labels = [], onBehalf: others = [], hops }: Caller, target: string) {
  const onBehalf = [...new Set([...others, agentId])]
  const known = target === agentId ? labels : [...new Set([...labels, 'UntrustedAgent'])]
  return { agentId, onBehalf, labels: known, hops }
}

/** Jobs that an agent made, and those that are for it. */
export async function jobsOf({ jobs }: Runtime, agentId: string): Promise<readonly Job[]> {
  return jobs.ofAgent(agentId, MAX_LISTED)
}

/** A job that the agent itself made: it changes no other. Throws `…_not_found`. */
export async function requireOwn(
  { schedules }: Runtime,
  code: 'schedule_not_found' | 'cron_job_not_found',
  id: string,
  agentId: string,
): Promise<Job> {
  const job = await schedules.require(code, id)
  if (job.createdBy === agentId) return job
  throw new Refusal('forbidden', 'This agent did not make that schedule: a person has to change it.')
}

/** Starts a job again that was disabled because it failed. What a person disabled stays disabled. */
export async function resume(
  runtime: Runtime,
  code: 'schedule_not_found' | 'cron_job_not_found',
  id: string,
  agentId: string,
): Promise<Job> {
  const job = await requireOwn(runtime, code, id, agentId)
  if (job.reason === 'disabled by hand')
    throw new Refusal('forbidden', 'A person disabled this schedule, and has to enable it again.')
  return runtime.schedules.change(code, id, { enabled: true }, { agentId })
}

/** A job as an agent is told of it. */
export function brief({ id: jobId, name, agentId, timing, action, enabled, nextRun, lastStatus, reason }: Job) {
  return {
    id: jobId,
    name,
    agent_id: agentId,
    schedule: timing.kind === 'cron' ? timing.expr : timing,
    tz: timing.kind === 'cron' ? timing.tz : undefined,
    prompt: textOf(action),
    enabled,
    next_run: nextRun === undefined ? null : toIso(nextRun),
    last_status: lastStatus ?? null,
    reason,
  }
}
