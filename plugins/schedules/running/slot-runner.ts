import * as v from 'valibot'
import { toIso } from 'svc/internal'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Job as QueueJob, JobOutcome } from '../../queue/contract.ts'
import type { Statement } from 'svc/sdk'
import type { Job, Slot } from '../job.ts'
import type { Skip } from '../slots/store.ts'
import { AgentTurnAction } from './agent-turn.ts'
import type { AgentTurnDeps } from './agent-turn.ts'
import { SlotEnds } from './ends.ts'
import type { SlotEndsDeps } from './ends.ts'
import { WorkflowRunAction } from './workflow-run.ts'
import type { WorkflowActionDeps } from './workflow-run.ts'

export interface SlotRunnerDeps
  extends SlotEndsDeps, Omit<AgentTurnDeps, 'ends'>, Omit<WorkflowActionDeps, 'ends' | 'slots'> {
  readonly agents: Pick<Agents, 'find'>
  /** The worker left a slot that has not ended. */
  readonly left: (slot: Slot) => void
  /** Settles when all listeners have it. */
  readonly systemEvent: (job: Job, slot: Slot, text: string) => Promise<void>
}

const Payload = v.object({ job_id: v.string(), kind: v.picklist(['slot', 'manual']), slot_at: v.number() })

/** Runs one slot. What it leaves behind is committed together with the end of its job of the queue. */
export class SlotRunner {
  readonly #deps: SlotRunnerDeps
  readonly #ends: SlotEnds
  readonly #turn: AgentTurnAction
  readonly #workflow: WorkflowRunAction
  constructor(deps: SlotRunnerDeps) {
    this.#deps = deps
    this.#ends = new SlotEnds(deps)
    this.#turn = new AgentTurnAction({ ...deps, ends: this.#ends })
    this.#workflow = new WorkflowRunAction({ ...deps, ends: this.#ends })
  }

  async run({ payload, signal }: Pick<QueueJob, 'payload' | 'signal'>): Promise<JobOutcome> {
    const found = await this.#find(payload)
    if (!found) return { outcome: 'done' }
    try {
      return await this.#act(found.job, found.slot, signal)
    } finally {
      if (signal.aborted) this.#deps.left(found.slot)
    }
  }
  async #act(job: Job, slot: Slot, signal: AbortSignal): Promise<JobOutcome> {
    const { action } = job
    const agent = await this.#deps.agents.find(job.agentId)
    const skip = whyNot(job, slot, agent)
    if (skip && !(await this.#hasBegun(job, slot))) return this.#ends.skip(job, slot, skip)
    if (action.kind === 'agent_turn') return this.#turn.run({ job, slot, action, agent, signal })
    if (action.kind === 'workflow') return this.#workflow.run(job, slot, action)
    return this.#systemEvent(job, slot, action.text)
  }

  /** The queue gave up: the daemon died too often, or what was to be done could not be. */
  async dead({ payload }: Pick<QueueJob, 'payload'>, reason: string): Promise<readonly Statement[]> {
    const found = await this.#find(payload)
    return found ? (this.#ends.fail(found.job, found.slot, { error: reason }).statements ?? []) : []
  }

  /** `undefined` when it has ended or its job was removed. */
  async #find(payload: unknown): Promise<{ readonly job: Job; readonly slot: Slot } | undefined> {
    const { jobs, slots } = this.#deps
    const { job_id: jobId, kind, slot_at: slotAt } = v.parse(Payload, payload)
    const slot = await slots.find({ jobId, kind, slotAt })
    const job = slot?.state === 'open' ? await jobs.find(jobId) : undefined
    return slot && job ? { job, slot } : undefined
  }
  async #hasBegun({ action }: Job, slot: Slot): Promise<boolean> {
    if (action.kind === 'system_event') return false
    return action.kind === 'workflow' ? this.#workflow.hasBegun(slot) : this.#turn.hasBegun(slot)
  }

  /** Told before its end is written: after a crash in between it is told again, with the same id. */
  async #systemEvent(job: Job, slot: Slot, text: string): Promise<JobOutcome> {
    const { audit, systemEvent } = this.#deps
    await systemEvent(job, slot, text)
    const details = `system event of schedule ${job.id} for ${toIso(slot.slotAt)}: ${text}`
    const entry = audit.entry({ event: 'event_published', agentId: job.agentId, details })
    const { statements = [], ...outcome } = this.#ends.succeed(job, slot, { text })
    return { ...outcome, statements: [...statements, entry] }
  }
}

/** Why a slot does not begin, which is no failure of its job. */
function whyNot(job: Job, slot: Slot, agent: Agent | undefined): Skip | undefined {
  if (!agent) return { reason: 'agent_removed', detail: 'its agent was removed' }
  if (slot.kind === 'slot' && !job.enabled) return { reason: 'disabled', detail: 'the schedule was disabled meanwhile' }
  if (job.action.kind !== 'system_event' && agent.state !== 'Running')
    return { reason: 'agent_not_running', detail: `agent "${agent.name}" is ${agent.state.toLowerCase()}` }
  return undefined
}
