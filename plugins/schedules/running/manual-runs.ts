import { v7 } from 'uuid'
import { sleep, stableId } from 'svc/internal'
import type { Clock } from 'svc/internal'
import { Refusal, SerialQueue } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { Queue } from '../../queue/contract.ts'
import type { Settings } from '../config.ts'
import type { Job, Slot } from '../job.ts'
import type { JobStore } from '../jobs/store.ts'
import { LANE } from '../lane.ts'
import type { SlotStore } from '../slots/store.ts'

export interface ManualRunsDeps {
  readonly jobs: Pick<JobStore, 'commit'>
  readonly slots: SlotStore
  readonly agents: Pick<Agents, 'requireRunning'>
  readonly audit: Pick<Audit, 'entry'>
  readonly queue: Pick<Queue, 'add' | 'admit' | 'find'>
  readonly settings: Settings
  readonly clock: Clock
}

/** Another daemon may run it, which tells nobody here. */
const RECHECK_MS = 2_000

/** Runs of a job that somebody asked for, which are no slots of it. */
export class ManualRuns {
  readonly #deps: ManualRunsDeps
  readonly #waiting = new Map<string, PromiseWithResolvers<void>>()
  /** Two in the same millisecond are two runs. */
  readonly #starts = new SerialQueue()
  constructor(deps: ManualRunsDeps) {
    this.#deps = deps
  }

  /** A run ended, was cancelled, or its job was removed. */
  tell(runId: string): void {
    this.#waiting.get(runId)?.resolve()
    this.#waiting.delete(runId)
  }

  /**
   * Begins a run and waits for its end. `id`: begins it once, however often it is asked for. Throws `conflict` when the
   * agent does not run, and `service_unavailable` when it takes too long; the run goes on then.
   */
  async run(job: Job, signal: AbortSignal, id: string = v7()): Promise<Slot> {
    const runId = stableId('schedule-manual', job.id, id)
    await this.#starts.run(async () => {
      if (!(await this.#deps.slots.findManual(runId))) await this.#start(job, runId)
    })
    return this.#ended(runId, signal, this.#deps.clock.now())
  }
  /**
   * Waits for the end of the run with this id, as long as `run` would since it began. `undefined` when it never began.
   */
  async find(job: Job, signal: AbortSignal, id: string): Promise<Slot | undefined> {
    const runId = stableId('schedule-manual', job.id, id)
    const slot = await this.#deps.slots.findManual(runId)
    return slot && this.#ended(runId, signal, slot.createdAt)
  }

  async #start({ id, name, agentId, enabled, reason, action }: Job, runId: string): Promise<void> {
    const { jobs, slots, agents, audit, queue, clock } = this.#deps
    if (!enabled)
      throw new Refusal('invalid_request', `This schedule is disabled${reason ? ` (${reason})` : ''}; enable it`)
    if (action.kind !== 'system_event') await agents.requireRunning(agentId)
    await queue.admit(agentId)
    const now = clock.now()
    let slotAt = now
    while (await slots.has({ jobId: id, kind: 'manual', slotAt })) slotAt++
    const payload = { job_id: id, kind: 'manual', slot_at: slotAt }
    await jobs.commit([
      slots.open({ jobId: id, kind: 'manual', slotAt, lateMs: 0, runId, createdAt: now }),
      queue.add({ lane: LANE, id: runId, group: id, agentId, payload }),
      audit.entry({ event: 'cron_fired', agentId, details: `schedule ${id} "${name}" by hand` }),
    ])
  }

  async #ended(runId: string, signal: AbortSignal, since: number): Promise<Slot> {
    const until = since + this.#deps.settings.run_wait_secs * 1000
    try {
      for (;;) {
        // Listened to before it is read: an end in between is not missed.
        const ended = this.#endOf(runId)
        const slot = await this.#read(runId)
        if (slot.state !== 'open') return slot
        await this.#wait(ended, until, signal)
      }
    } finally {
      this.tell(runId)
    }
  }
  async #read(runId: string): Promise<Slot> {
    const slot = await this.#deps.slots.findManual(runId)
    if (!slot) throw new Refusal('conflict', 'This schedule was removed while it ran')
    if (slot.state !== 'open' || !(await this.#isCancelled(slot))) return slot
    return this.#read(runId)
  }
  #endOf(runId: string): Promise<void> {
    const known = this.#waiting.get(runId) ?? Promise.withResolvers<void>()
    this.#waiting.set(runId, known)
    return known.promise
  }
  async #wait(ended: Promise<void>, until: number, signal: AbortSignal): Promise<void> {
    const { clock, settings } = this.#deps
    const leftMs = until - clock.now()
    if (leftMs <= 0) throw tooLong(settings.run_wait_secs)
    const done = new AbortController()
    const either = AbortSignal.any([signal, done.signal])
    const pause = sleep(clock, Math.min(leftMs, RECHECK_MS), either).catch((error: unknown) => {
      if (!done.signal.aborted) throw error
    })
    try {
      await Promise.race([ended, pause])
    } finally {
      done.abort()
    }
  }
  /** Somebody cancelled its job of the queue: the record of the run is ended. */
  async #isCancelled(slot: Slot): Promise<boolean> {
    const { queue, slots, jobs, clock } = this.#deps
    const state = (await queue.find(LANE, slot.runId))?.state
    if (state === 'pending' || state === 'running') return false
    await jobs.commit([slots.skip(slot, { reason: 'cancelled', detail: 'its job was cancelled' }, clock.now())])
    return true
  }
}

function tooLong(secs: number): Refusal {
  return new Refusal(
    'service_unavailable',
    `The run takes longer than ${secs} seconds (plugins.schedules.run_wait_secs) and goes on; the list of slots has ` +
      'its result',
    { retryAfterSecs: 30 },
  )
}
