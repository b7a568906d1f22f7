import type { Clock } from 'svc/internal'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { JobOutcome } from '../../queue/contract.ts'
import type { RunSummary, WorkflowRuns } from '../../workflows/contract.ts'
import type { Action, Job, Slot } from '../job.ts'
import type { SlotStore } from '../slots/store.ts'
import type { SlotEnds } from './ends.ts'
import { later } from './later.ts'

export interface WorkflowActionDeps {
  readonly workflows: () => Pick<WorkflowRuns, 'start' | 'find' | 'cancel' | 'resolve'> | undefined
  readonly slots: Pick<SlotStore, 'begun'>
  readonly clock: Clock
  readonly ends: SlotEnds
}
type WorkflowAction = Extract<Action, { readonly kind: 'workflow' }>

/** The end of a run makes its job of the queue due; this is for an end that nobody heard of. */
const MAX_WAIT_MS = 300_000

/**
 * A slot that runs a workflow. The run has the id of the slot's job of the queue, so that a slot starts one run. It may
 * wait for a person for days: the job holds no place in its lane meanwhile.
 */
export class WorkflowRunAction {
  readonly #deps: WorkflowActionDeps
  constructor(deps: WorkflowActionDeps) {
    this.#deps = deps
  }

  /** Also when it has ended. */
  async hasBegun({ runId }: Slot): Promise<boolean> {
    return (await this.#runs().find(runId)) !== undefined
  }

  async run(job: Job, slot: Slot, action: WorkflowAction): Promise<JobOutcome> {
    const runs = this.#runs()
    const run = await runs.find(slot.runId)
    if (!run) return this.#start(job, slot, action)
    if (run.state === 'Completed' || run.state === 'Failed' || run.state === 'Cancelled')
      return this.#end(job, slot, run)
    const leftMs = this.#leftMs(slot, action)
    if (leftMs > 0) return { outcome: 'postponed', afterMs: Math.min(leftMs, MAX_WAIT_MS) }
    const late = `it took longer than ${action.timeout_secs} seconds`
    await runs.cancel(slot.runId, late)
    return this.#deps.ends.fail(job, slot, { error: late })
  }

  async #start(job: Job, slot: Slot, action: WorkflowAction): Promise<JobOutcome> {
    const { slots, clock, ends } = this.#deps
    const { workflow_id: workflowId, input = '' } = action
    const { createdBy: agentId, hops } = job
    const schedule = `schedule ${job.id}`
    // The input is no words of a person when an agent wrote it.
    const cause = agentId === undefined ? schedule : `agent ${agentId} (${schedule})`
    try {
      const runs = this.#runs()
      // Its rights, or those of its workflow, may have changed since it made the schedule.
      if (agentId !== undefined) await runs.resolve(workflowId, agentId)
      await runs.start({ id: slot.runId, workflowId, input, cause, hops, ...omitUndefined({ agentId }) })
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      // Too many runs, or a full queue.
      if (error.retryAfterSecs !== undefined) return later(error)
      return ends.fail(job, slot, { error: error.message })
    }
    const now = clock.now()
    const afterMs = Math.min(this.#leftMs({ ...slot, begunAt: now }, action), MAX_WAIT_MS)
    return { outcome: 'postponed', afterMs, statements: [slots.begun(slot, slot.runId, now)] }
  }

  #end(job: Job, slot: Slot, { state, output = '', error = '' }: RunSummary): JobOutcome {
    const { ends } = this.#deps
    if (state === 'Completed') return ends.succeed(job, slot, { text: output })
    if (state === 'Failed') return ends.fail(job, slot, { error })
    return ends.cancelled(job, slot, { text: '', error: error || 'the run was cancelled' })
  }

  #leftMs({ begunAt, createdAt }: Slot, { timeout_secs: secs }: WorkflowAction): number {
    if (secs === undefined) return MAX_WAIT_MS
    return (begunAt ?? createdAt) + secs * 1000 - this.#deps.clock.now()
  }
  #runs(): Pick<WorkflowRuns, 'start' | 'find' | 'cancel' | 'resolve'> {
    const runs = this.#deps.workflows()
    if (!runs) throw new Refusal('service_unavailable', 'the plugin "workflows" is not loaded')
    return runs
  }
}
