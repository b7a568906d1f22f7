import { messageOf, stableId, toIso } from 'svc/internal'
import type { Clock } from 'svc/internal'
import type { Logger, Statement } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { Queue } from '../queue/contract.ts'
import type { Settings } from './config.ts'
import type { Job, Slot } from './job.ts'
import { LANE } from './lane.ts'
import type { JobStore } from './jobs/store.ts'
import { planSlots } from './slots/plan.ts'
import type { SkippedSlot, SlotPlan } from './slots/plan.ts'
import type { SlotStore } from './slots/store.ts'
import { nextSlot } from './timing/timing.ts'

/** Timers stand still while a machine sleeps; this is how late it is noticed. */
const MAX_TIMER_MS = 15_000
const RETRY_MS = 1_000
/** Jobs that are due together are committed together: few enough that other work gets its turn in between. */
const BATCH = 20
/** A step back by less is the clock being adjusted, and changes no slot. */
const CLOCK_STEP_MS = 1_000

export interface SchedulerDeps {
  readonly jobs: JobStore
  readonly slots: SlotStore
  readonly queue: Pick<Queue, 'add' | 'find'>
  readonly audit: Pick<Audit, 'entry'>
  readonly settings: Settings
  readonly clock: Clock
  readonly log: Logger
  /** Runs work that unloading waits for. */
  readonly background: (work: () => Promise<void>) => void
  /** Somebody cancelled the job of a slot. */
  readonly cancelled: (slot: Slot) => void
  /** A slot will not run. */
  readonly skipped: (job: Job, skip: SkippedSlot) => void
  readonly counted: (outcome: 'fired' | 'skipped', count: number) => void
}

/** Turns slots that are due into jobs of the queue: once each, with any number of daemons on the database. */
export class Scheduler {
  readonly #deps: SchedulerDeps
  #pass: Promise<void> | undefined
  #isPassRequested = false
  #isStopped = false
  #lastNow = 0
  #cancelTimer: (() => void) | undefined

  constructor(deps: SchedulerDeps) {
    this.#deps = deps
  }

  /** Looks for slots that are due. */
  wake(): void {
    if (this.#isStopped) return
    if (this.#pass) {
      this.#isPassRequested = true
      return
    }
    this.#pass = this.#search().finally(() => {
      this.#pass = undefined
      if (!this.#isPassRequested) return
      this.#isPassRequested = false
      this.wake()
    })
    const pass = this.#pass
    this.#deps.background(() => pass)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancelTimer?.()
    await this.#pass
  }

  async #search(): Promise<void> {
    const { jobs, clock, log } = this.#deps
    this.#cancelTimer?.()
    try {
      const now = clock.now()
      // Also at the start: an earlier process may have seen a clock that was ahead.
      if (now < this.#lastNow - CLOCK_STEP_MS || this.#lastNow === 0) await this.#realign(now)
      this.#lastNow = now
      for (;;) {
        const due = await jobs.due(now, BATCH)
        if (due.length === 0 || this.#isStopped) break
        await this.#fireAll(due, now)
      }
      await this.#wait(now)
    } catch (error) {
      log.warn(`schedules: slots could not be started; tried again: ${messageOf(error)}`)
      this.#wakeAfter(RETRY_MS)
    }
  }
  async #wait(searched: number): Promise<void> {
    const { jobs, clock } = this.#deps
    const next = await jobs.nextDue(searched)
    if (next !== undefined) this.#wakeAfter(Math.min(Math.max(next - clock.now(), 0), MAX_TIMER_MS))
  }
  #wakeAfter(ms: number): void {
    if (!this.#isStopped) this.#cancelTimer = this.#deps.clock.after(ms, () => this.wake())
  }

  async #fireAll(due: readonly Job[], now: number): Promise<void> {
    const plans = await Promise.all(due.map(async (job) => ({ job, plan: await this.#plan(job, now) })))
    const { jobs } = this.#deps
    try {
      await jobs.commit(plans.flatMap(({ job, plan }) => this.#statements(job, plan, now)))
      for (const { job, plan } of plans) this.#report(job, plan)
    } catch {
      // One of them changed meanwhile, by a person or by another daemon.
      for (const { job, plan } of plans) await this.#fire(job, plan, now)
    }
  }
  async #fire(job: Job, plan: SlotPlan, now: number): Promise<void> {
    const { jobs } = this.#deps
    try {
      await jobs.commit(this.#statements(job, plan, now))
      this.#report(job, plan)
    } catch (error) {
      if ((await jobs.find(job.id))?.version === job.version) throw error
    }
  }

  async #plan(job: Job, now: number): Promise<SlotPlan> {
    const { slots, settings } = this.#deps
    const isBusy = await this.#isBusy(job, now)
    const plan = planSlots(job, { now, isBusy, graceMs: settings.grace_secs * 1000, max: settings.max_skips_recorded })
    if (plan.fire === undefined) return plan
    // After the clock was set back, a slot may come again.
    const isKnown = await slots.has({ jobId: job.id, kind: 'slot', slotAt: plan.fire })
    return isKnown ? { ...plan, fire: undefined } : plan
  }
  /** Whether an earlier slot still waits or runs. One whose job of the queue was cancelled is ended. */
  async #isBusy(job: Job, now: number): Promise<boolean> {
    const { jobs, slots, queue } = this.#deps
    const waiting = await slots.waiting(job.id)
    // One that cannot be read may run: nothing happens twice.
    let isBusy = !waiting.isWhole
    for (const slot of waiting.slots) {
      const state = (await queue.find(LANE, slot.runId))?.state
      if (state === 'pending' || state === 'running') isBusy = true
      else {
        await jobs.commit([slots.skip(slot, { reason: 'cancelled', detail: 'its job was cancelled' }, now)])
        this.#deps.cancelled(slot)
      }
    }
    return isBusy
  }

  #statements(job: Job, { fire, skips, next }: SlotPlan, now: number): readonly Statement[] {
    const { jobs, slots, queue, audit } = this.#deps
    const toRow = (slotAt: number) => {
      const runId = stableId('schedule', job.id, String(slotAt))
      return { jobId: job.id, kind: 'slot', slotAt, lateMs: now - slotAt, runId, createdAt: now } as const
    }
    const skipped = skips.map(({ slotAt, untilAt, ...skip }) => slots.skipped({ ...toRow(slotAt), untilAt }, skip))
    const advance = jobs.advance(job, next, now)
    if (fire === undefined) return [advance, ...skipped]
    const row = toRow(fire)
    const { id, name, agentId } = job
    return [
      advance,
      ...skipped,
      slots.open(row),
      queue.add({
        lane: LANE,
        id: row.runId,
        group: id,
        agentId,
        payload: { job_id: id, kind: 'slot', slot_at: fire },
      }),
      audit.entry({ event: 'cron_fired', agentId, details: `schedule ${id} "${name}" for ${toIso(fire)}` }),
    ]
  }
  #report(job: Job, { fire, skips }: SlotPlan): void {
    const { id, name } = job
    const { log, counted, skipped } = this.#deps
    if (fire !== undefined) counted('fired', 1)
    if (skips.length === 0) return
    counted('skipped', skips.length)
    for (const skip of skips) skipped(job, skip)
    const [first] = skips
    log.info(`schedule ${id} "${name}": ${skips.length} slots are skipped (${first?.reason}: ${first?.detail})`)
  }

  /** The clock was set back: what was computed from the later time would come too late. */
  async #realign(now: number): Promise<void> {
    const { jobs, log } = this.#deps
    for (;;) {
      const planned = await jobs.plannedAfter(now + CLOCK_STEP_MS, BATCH)
      for (const job of planned) {
        const next = await this.#firstFree(job, now)
        if (next !== job.nextRun) log.info(`schedule ${job.id} "${job.name}": the clock was set back`)
        await jobs.commit([jobs.advance(job, next, now)])
      }
      if (planned.length === 0) return
    }
  }
  /** The first slot after a moment that nothing has been recorded of. */
  async #firstFree({ id, timing, nextRun }: Job, now: number): Promise<number | undefined> {
    const { slots } = this.#deps
    if (timing.kind === 'at') return nextRun
    let next = nextSlot(timing, now)
    while (next !== undefined && (await slots.has({ jobId: id, kind: 'slot', slotAt: next })))
      next = nextSlot(timing, next)
    return next
  }
}
