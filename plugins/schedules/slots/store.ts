import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import { SlotRow } from '../job.ts'
import type { Slot, SlotKind, SlotState } from '../job.ts'
import type { SkipReason } from '../reasons.ts'

export type SlotKey = Pick<Slot, 'jobId' | 'kind' | 'slotAt'>
export type NewSlot = SlotKey & Pick<Slot, 'lateMs' | 'runId' | 'createdAt'>
export interface Skip {
  readonly reason: SkipReason
  readonly detail: string
}
export interface SlotEnd {
  readonly state: Exclude<SlotState, 'open' | 'skipped'>
  readonly turnId?: string | undefined
  readonly result?: string | undefined
  readonly error?: string | undefined
}

/** SQL of the slots. */
export class SlotStore {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof SlotRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'schedules_slot', key: ['job_id', 'kind', 'slot_at'], schema: SlotRow, log })
  }

  /** A second row for the same slot makes its batch fail. */
  open({ jobId, kind, slotAt, lateMs, runId, createdAt }: NewSlot): Statement {
    return this.#db.sql`INSERT INTO schedules_slot (job_id, kind, slot_at, state, late_ms, run_id, created_at)
      VALUES (${jobId}, ${kind}, ${slotAt}, 'open', ${lateMs}, ${runId}, ${createdAt})`
  }
  /** A slot that never ran. One that is there already stays as it is. */
  skipped(slot: NewSlot & { readonly untilAt?: number | undefined }, { reason, detail }: Skip): Statement {
    return this.#db.sql`INSERT INTO schedules_slot
        (job_id, kind, slot_at, until_at, state, reason, detail, late_ms, run_id, created_at, ended_at)
      VALUES (${slot.jobId}, ${slot.kind}, ${slot.slotAt}, ${slot.untilAt ?? null}, 'skipped', ${reason}, ${detail},
        ${slot.lateMs}, ${slot.runId}, ${slot.createdAt}, ${slot.createdAt})
      ON CONFLICT (job_id, kind, slot_at) DO NOTHING`
  }
  end({ jobId, kind, slotAt }: SlotKey, { state, turnId, result, error }: SlotEnd, now: number): Statement {
    return this.#db.sql`UPDATE schedules_slot SET state = ${state}, turn_id = ${turnId ?? null},
        result = ${result ?? null}, error = ${error ?? null}, ended_at = ${now}
      WHERE job_id = ${jobId} AND kind = ${kind} AND slot_at = ${slotAt} AND state = 'open'`
  }
  /** Its run of a workflow is on disk. */
  begun({ jobId, kind, slotAt }: SlotKey, workflowRunId: string, now: number): Statement {
    return this.#db.sql`UPDATE schedules_slot SET workflow_run_id = ${workflowRunId}, begun_at = ${now}
      WHERE job_id = ${jobId} AND kind = ${kind} AND slot_at = ${slotAt}`
  }
  skip({ jobId, kind, slotAt }: SlotKey, { reason, detail }: Skip, now: number): Statement {
    return this.#db.sql`UPDATE schedules_slot
      SET state = 'skipped', reason = ${reason}, detail = ${detail}, ended_at = ${now}
      WHERE job_id = ${jobId} AND kind = ${kind} AND slot_at = ${slotAt} AND state = 'open'`
  }

  async find({ jobId, kind, slotAt }: SlotKey): Promise<Slot | undefined> {
    return this.#rows.oneOrThrow(
      await this.#db.one`SELECT * FROM schedules_slot
        WHERE job_id = ${jobId} AND kind = ${kind} AND slot_at = ${slotAt}`,
    )
  }
  /** Also when its row cannot be read. */
  async has({ jobId, kind, slotAt }: SlotKey): Promise<boolean> {
    const row = await this.#db.one`SELECT 1 AS found FROM schedules_slot
      WHERE job_id = ${jobId} AND kind = ${kind} AND slot_at = ${slotAt}`
    return row !== undefined
  }
  /** A run by hand. */
  async findManual(runId: string): Promise<Slot | undefined> {
    return this.#rows.oneOrThrow(
      await this.#db.one`SELECT * FROM schedules_slot WHERE kind = 'manual' AND run_id = ${runId}`,
    )
  }
  /** Slots of a job that wait or run. `isWhole`: there is none that cannot be read. */
  async waiting(
    jobId: string,
    kind: SlotKind = 'slot',
  ): Promise<{ readonly slots: readonly Slot[]; readonly isWhole: boolean }> {
    const rows = await this.#db.all`SELECT * FROM schedules_slot
      WHERE job_id = ${jobId} AND state = 'open' AND kind = ${kind}`
    const slots = this.#rows.all(rows)
    return { slots, isWhole: slots.length === rows.length }
  }
  /** Newest first. */
  async list(jobId: string, before: number | undefined, limit: number): Promise<readonly Slot[]> {
    return this.#rows.all(
      await this.#db.all`SELECT * FROM schedules_slot
        WHERE job_id = ${jobId} AND slot_at < ${before ?? Number.MAX_SAFE_INTEGER}
        ORDER BY slot_at DESC, kind LIMIT ${limit}`,
    )
  }
  deleteOld(before: number): Statement {
    return this.#db.sql`DELETE FROM schedules_slot WHERE created_at < ${before} AND state <> 'open'`
  }
}
