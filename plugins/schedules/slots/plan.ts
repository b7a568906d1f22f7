import { toIso } from 'svc/internal'
import type { Job } from '../job.ts'
import { dueSlots, nextSlot } from '../timing/timing.ts'
import type { Skip } from './store.ts'

export interface SkippedSlot extends Skip {
  readonly slotAt: number
  /** It stands for all up to this moment. */
  readonly untilAt?: number
}
/** What becomes of the slots that are due. */
export interface SlotPlan {
  /** The slot that runs now. */
  readonly fire: number | undefined
  readonly skips: readonly SkippedSlot[]
  /** The slot after them. */
  readonly next: number | undefined
}
interface PlanOptions {
  readonly now: number
  /** An earlier slot of the job still waits or runs. */
  readonly isBusy: boolean
  /** How late a slot may be that is not missed. */
  readonly graceMs: number
  /** Skipped slots with a record each; older ones share one. */
  readonly max: number
}

/** At most one slot runs, the last one; every other gets a reason. */
export function planSlots(job: Job, { now, isBusy, graceMs, max }: PlanOptions): SlotPlan {
  const { timing, nextRun = now, missed } = job
  const { slots, isCut } = dueSlots(timing, nextRun, now, max)
  const last = slots.at(-1)
  if (last === undefined) return { fire: undefined, skips: [], next: nextSlot(timing, now) }
  const isMissed = now - last > graceMs && missed === 'skip'
  const runs = !isMissed && !isBusy
  const why: Skip = isMissed
    ? { reason: 'missed', detail: `nobody could run it in time; noticed at ${toIso(now)}` }
    : isBusy
      ? { reason: 'still_running', detail: 'an earlier slot has not ended' }
      : { reason: 'superseded', detail: `the slot of ${toIso(last)} runs for it` }
  const earlier = isCut && slots[0] !== undefined ? [{ ...why, slotAt: nextRun, untilAt: slots[0] - 1 }] : []
  const skips = slots.slice(0, runs ? -1 : undefined).map((slotAt) => ({ ...why, slotAt }))
  return { fire: runs ? last : undefined, skips: [...earlier, ...skips], next: nextSlot(timing, last) }
}
