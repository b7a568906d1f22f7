import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { HoldReason } from '../reasons.ts'
import { CauseRow, EventAt, FiringRow } from '../trigger.ts'
import type { Cause, Firing } from '../trigger.ts'

export type NewFiring = Omit<Firing, 'result' | 'error' | 'endedAt'>
export interface FiringEnd {
  readonly state: 'done' | 'failed' | 'held_back' | 'cancelled'
  readonly reason?: HoldReason | undefined
  readonly detail?: string | undefined
  readonly result?: string | undefined
  readonly error?: string | undefined
}

/** SQL of the history: what triggers matched, and what came of it. */
export class FiringStore {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof FiringRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'triggers_firing', key: ['id'], schema: FiringRow, log })
  }

  insert(firing: NewFiring): Statement {
    const endedAt = firing.state === 'open' ? null : firing.createdAt
    return this.#db.sql`INSERT INTO triggers_firing (id, trigger_id, event_id, position, event_kind, event_text, labels,
        agent_id, turn_id, depth, state, reason, detail, event_at, created_at, ended_at)
      VALUES (${firing.id}, ${firing.triggerId}, ${firing.eventId}, ${firing.position}, ${firing.eventKind},
        ${firing.eventText}, ${JSON.stringify(firing.labels)}, ${firing.agentId}, ${firing.turnId}, ${firing.depth},
        ${firing.state}, ${firing.reason ?? null}, ${firing.detail ?? null}, ${firing.eventAt}, ${firing.createdAt},
        ${endedAt})`
  }
  end(id: string, { state, reason, detail, result, error }: FiringEnd, now: number): Statement {
    return this.#db.sql`UPDATE triggers_firing SET state = ${state}, reason = ${reason ?? null},
        detail = ${detail ?? null}, result = ${result ?? null}, error = ${error ?? null}, ended_at = ${now}
      WHERE id = ${id} AND state = 'open'`
  }
  async find(id: string): Promise<Firing | undefined> {
    return this.#rows.oneOrThrow(await this.#db.one`SELECT * FROM triggers_firing WHERE id = ${id}`)
  }
  /** Newest first. */
  async list(triggerId: string, before: number, limit: number): Promise<readonly Firing[]> {
    return this.#rows.all(
      await this.#db.all`SELECT * FROM triggers_firing WHERE trigger_id = ${triggerId} AND position < ${before}
        ORDER BY position DESC LIMIT ${limit}`,
    )
  }
  async open(triggerId: string): Promise<readonly Firing[]> {
    return this.#rows.all(
      await this.#db.all`SELECT * FROM triggers_firing WHERE trigger_id = ${triggerId} AND state = 'open'`,
    )
  }
  /** What a trigger began the turn or run for; `undefined` when none did. */
  async causeOf(turnOrRun: string): Promise<Cause | undefined> {
    const row = await this.#db.one`SELECT trigger_id, depth FROM triggers_firing
      WHERE (turn_id = ${turnOrRun} OR id = ${turnOrRun}) AND state <> 'held_back' LIMIT 1`
    return v.parse(v.optional(CauseRow), row)
  }

  /** When the event happened that the trigger fired for last. */
  async lastEventAt(triggerId: string, eventKey: string): Promise<number | undefined> {
    const row = await this.#db.one`SELECT event_at FROM triggers_cooldown
      WHERE trigger_id = ${triggerId} AND event_key = ${eventKey}`
    return v.parse(v.optional(EventAt), row)?.event_at
  }
  cool(triggerId: string, eventKey: string, eventAt: number): Statement {
    return this.#db.sql`INSERT INTO triggers_cooldown (trigger_id, event_key, event_at)
      VALUES (${triggerId}, ${eventKey}, ${eventAt})
      ON CONFLICT (trigger_id, event_key) DO UPDATE SET event_at = excluded.event_at`
  }

  /** Keeps the newest ended firings of a trigger. */
  trim(triggerId: string, kept: number): Statement {
    return this.#db.sql`DELETE FROM triggers_firing
      WHERE trigger_id = ${triggerId} AND state <> 'open' AND position <= (
        SELECT position FROM triggers_firing WHERE trigger_id = ${triggerId} AND state <> 'open'
        ORDER BY position DESC LIMIT 1 OFFSET ${kept})`
  }
  deleteOld(endedBefore: number, cooledBefore: number): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM triggers_firing WHERE state <> 'open' AND ended_at < ${endedBefore}`,
      this.#db.sql`DELETE FROM triggers_cooldown WHERE event_at < ${cooledBefore}`,
    ]
  }
}
