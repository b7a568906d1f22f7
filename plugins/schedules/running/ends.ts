import { stableId, toIso } from 'svc/internal'
import type { Clock } from 'svc/internal'
import type { Logger, Statement } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import type { JobOutcome } from '../../queue/contract.ts'
import type { ResultDelivery } from '../../result-delivery/contract.ts'
import type { Settings } from '../config.ts'
import type { Job, Slot } from '../job.ts'
import type { JobStore } from '../jobs/store.ts'
import type { Skip, SlotEnd, SlotStore } from '../slots/store.ts'

export interface SlotEndsDeps {
  readonly jobs: JobStore
  readonly slots: SlotStore
  readonly audit: Pick<Audit, 'entry'>
  readonly delivery: Pick<ResultDelivery, 'deliver'>
  readonly settings: Settings
  readonly clock: Clock
  readonly log: Logger
  /** The end of a slot is on disk. */
  readonly ended: (job: Job, slot: Slot, end: SlotOutcome) => void
  /** A job was disabled because it failed too often. */
  readonly disabled: (job: Job, failures: number, error: string) => void
}
export interface SlotOutcome {
  readonly state: 'done' | 'failed' | 'skipped' | 'cancelled'
  readonly turnId?: string | undefined
  readonly result?: string | undefined
  readonly error?: string | undefined
}
export type Done = Extract<JobOutcome, { readonly outcome: 'done' }>

const MAX_ERROR = 2_000

/** How a slot ends, as statements that are committed together with the end of its job of the queue. */
export class SlotEnds {
  readonly #deps: SlotEndsDeps
  constructor(deps: SlotEndsDeps) {
    this.#deps = deps
  }

  succeed(job: Job, slot: Slot, { turnId, text }: { readonly turnId?: string; readonly text: string }): Done {
    const { jobs, settings, clock, delivery } = this.#deps
    const now = clock.now()
    const isSlot = slot.kind === 'slot'
    const data = { schedule_id: job.id, schedule: job.name, slot: toIso(slot.slotAt), late_ms: slot.lateMs }
    const results = job.targets.flatMap((target, at) =>
      delivery.deliver(target, {
        id: stableId('schedule-result', slot.runId, String(at)),
        agentId: job.agentId,
        event: 'schedule.completed',
        text,
        data,
      }),
    )
    return this.#end(job, slot, { state: 'done', turnId, result: text.slice(0, settings.max_result_chars) }, [
      jobs.ran(job, { at: now, status: 'ok', failures: isSlot ? 0 : undefined, ends: isSlot && job.oneShot }),
      ...results,
    ])
  }

  fail(job: Job, slot: Slot, { turnId, error }: { readonly turnId?: string; readonly error: string }): Done {
    const { jobs, settings, clock, audit, disabled, log } = this.#deps
    const now = clock.now()
    const reason = error.slice(0, MAX_ERROR)
    const end = { state: 'failed', turnId, error: reason } as const
    const status = `error: ${reason}`
    log.warn(`schedule ${job.id} "${job.name}" failed: ${reason}`)
    if (slot.kind === 'manual') return this.#end(job, slot, end, [jobs.ran(job, { at: now, status })])
    const failures = job.failures + 1
    if (failures < settings.max_failures)
      return this.#end(job, slot, end, [jobs.ran(job, { at: now, status, failures })])
    const disable = `disabled after ${failures} failures in a row`
    const ran = jobs.ran(job, { at: now, status, failures, disable })
    const details = `schedule ${job.id} "${job.name}" ${disable}: ${reason}`
    return this.#end(job, slot, end, [
      { ...ran, written: () => disabled(job, failures, reason) },
      audit.entry({ event: 'schedule_changed', agentId: job.agentId, details }),
      ...this.#tellDisabled(job, slot, details),
    ])
  }
  #tellDisabled(job: Job, slot: Slot, text: string): readonly Statement[] {
    return job.targets.flatMap((target, at) =>
      this.#deps.delivery.deliver(target, {
        id: stableId('schedule-disabled', slot.runId, String(at)),
        agentId: job.agentId,
        event: 'schedule.disabled',
        text,
        data: { schedule_id: job.id },
      }),
    )
  }

  /** Somebody stopped it, which is no failure. */
  cancelled(
    job: Job,
    slot: Slot,
    end: { readonly turnId?: string; readonly text: string; readonly error: string },
  ): Done {
    const { jobs, clock } = this.#deps
    const { turnId, text: result, error } = end
    const ran = jobs.ran(job, { at: clock.now(), status: `error: ${error}` })
    return this.#end(job, slot, { state: 'cancelled', turnId, result, error }, [ran])
  }

  skip(job: Job, slot: Slot, skip: Skip): Done {
    const { slots, clock, ended, log } = this.#deps
    log.info(`schedule ${job.id} "${job.name}": the slot is skipped (${skip.reason}: ${skip.detail})`)
    const row = slots.skip(slot, skip, clock.now())
    const outcome = { state: 'skipped', error: `${skip.reason}: ${skip.detail}` } as const
    return { outcome: 'done', statements: [{ ...row, written: () => ended(job, slot, outcome) }] }
  }

  #end(job: Job, slot: Slot, end: SlotEnd, statements: readonly Statement[]): Done {
    const { slots, clock, ended } = this.#deps
    const row = slots.end(slot, end, clock.now())
    return { outcome: 'done', statements: [{ ...row, written: () => ended(job, slot, end) }, ...statements] }
  }
}
