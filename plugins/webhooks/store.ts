import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import { DeliveryRow, TargetRow } from './schema.ts'
import type { Target } from './schema.ts'

const n = v.pipe(v.union([v.number(), v.string()]), v.transform(Number))
const Count = v.object({ n })
const CountOfTarget = v.object({ target_id: v.string(), dead: n, pending: n })
export interface DeliveryCounts {
  readonly dead: number
  readonly pending: number
}
export interface NewDelivery {
  readonly targetId: string
  readonly eventId: string
  readonly event: string
  readonly at: string
  readonly data: string
  readonly dead?: string
}

const flag = (value: boolean): number => (value ? 1 : 0)

export class WebhookStore {
  readonly #db: PluginDatabase
  readonly #deliveries: RowReader<typeof DeliveryRow>
  readonly #targets: RowReader<typeof TargetRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#deliveries = new RowReader({
      table: 'webhooks_delivery',
      key: ['target_id', 'event_id'],
      schema: DeliveryRow,
      log,
    })
    this.#targets = new RowReader({ table: 'webhooks_target', key: ['id'], schema: TargetRow, log })
  }

  async find(id: string): Promise<Target | undefined> {
    return this.#targets.oneOrThrow(await this.#db.one`SELECT * FROM webhooks_target WHERE id = ${id}`)
  }
  /** Oldest first. */
  async list(kind: Target['kind']): Promise<readonly Target[]> {
    return this.#targets.all(
      await this.#db.all`SELECT * FROM webhooks_target WHERE kind = ${kind} ORDER BY created_at, id`,
    )
  }
  async enabled(): Promise<readonly Target[]> {
    return this.#targets.all(await this.#db.all`SELECT * FROM webhooks_target WHERE enabled = 1 ORDER BY id`)
  }

  insert(target: Target): Statement {
    const { id, kind, name, url, position, created_at: createdAt, updated_at: updatedAt } = target
    const events = JSON.stringify(target.events)
    return this.#db.sql`INSERT INTO webhooks_target
        (id, kind, name, url, events, enabled, has_secret, position, created_at, updated_at)
      VALUES (${id}, ${kind}, ${name}, ${url}, ${events}, ${flag(target.enabled)}, ${flag(target.has_secret)},
        ${position}, ${createdAt}, ${updatedAt})`
  }
  /** `position` never moves back. */
  update(target: Target): Statement {
    const { id, name, url, position, updated_at: updatedAt } = target
    return this.#db.sql`UPDATE webhooks_target
      SET name = ${name}, url = ${url}, events = ${JSON.stringify(target.events)}, enabled = ${flag(target.enabled)},
        has_secret = ${flag(target.has_secret)}, updated_at = ${updatedAt},
        position = CASE WHEN position < ${position} THEN ${position} ELSE position END
      WHERE id = ${id}`
  }
  remove(id: string): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM webhooks_delivery WHERE target_id = ${id}`,
      this.#db.sql`DELETE FROM webhooks_target WHERE id = ${id}`,
    ]
  }

  /** Does nothing for an event that is there already: two processes may read the same entry of the trail. */
  enqueue({ targetId, eventId, event, at, data, dead }: NewDelivery, now: string): Statement {
    const isDead = dead !== undefined
    const statement = this.#db.sql`INSERT INTO webhooks_delivery
        (target_id, event_id, seq, event, occurred_at, data, state, attempts, due_at, error, settled_at)
      VALUES (${targetId}, ${eventId},
        (SELECT COALESCE(MAX(d.seq), 0) + 1 FROM webhooks_delivery d WHERE d.target_id = ${targetId}),
        ${event}, ${at}, ${data}, ${isDead ? 'dead' : 'pending'}, 0, ${now}, ${dead ?? null}, ${isDead ? now : null})
      ON CONFLICT (target_id, event_id) DO NOTHING`
    return { ...statement, exclusive: `webhooks_delivery ${targetId}` }
  }
  advancePosition(id: string, position: number): Statement {
    return this.#db.sql`UPDATE webhooks_target SET position = ${position} WHERE id = ${id} AND position < ${position}`
  }

  /** The delivery that has to come first. */
  async head(targetId: string): Promise<DeliveryRow | undefined> {
    return this.#deliveries.first(
      (limit) => this.#db.all`SELECT * FROM webhooks_delivery
        WHERE target_id = ${targetId} AND state = 'pending' ORDER BY seq LIMIT ${limit}`,
    )
  }
  async delivery(targetId: string, eventId: string): Promise<DeliveryRow | undefined> {
    return this.#deliveries.oneOrThrow(
      await this.#db.one`SELECT * FROM webhooks_delivery WHERE target_id = ${targetId} AND event_id = ${eventId}`,
    )
  }
  /** Newest first. */
  async deliveries(targetId: string, state: string | undefined, limit: number): Promise<readonly DeliveryRow[]> {
    const rows =
      state === undefined
        ? await this.#db.all`SELECT * FROM webhooks_delivery
            WHERE target_id = ${targetId} ORDER BY seq DESC LIMIT ${limit}`
        : await this.#db.all`SELECT * FROM webhooks_delivery
            WHERE target_id = ${targetId} AND state = ${state} ORDER BY seq DESC LIMIT ${limit}`
    return this.#deliveries.all(rows)
  }
  async count(targetId: string, state?: string): Promise<number> {
    const row =
      state === undefined
        ? await this.#db.one`SELECT count(*) AS n FROM webhooks_delivery WHERE target_id = ${targetId}`
        : await this.#db.one`SELECT count(*) AS n FROM webhooks_delivery
            WHERE target_id = ${targetId} AND state = ${state}`
    return v.parse(Count, row).n
  }
  /** Of every target that has one that is dead or waits. */
  async counts(): Promise<ReadonlyMap<string, DeliveryCounts>> {
    const rows = await this.#db.all`SELECT target_id, SUM(CASE WHEN state = 'dead' THEN 1 ELSE 0 END) AS dead,
        SUM(CASE WHEN state = 'pending' THEN 1 ELSE 0 END) AS pending
      FROM webhooks_delivery WHERE state IN ('dead', 'pending') GROUP BY target_id`
    return new Map(rows.map((row) => v.parse(CountOfTarget, row)).map(({ target_id: id, ...counts }) => [id, counts]))
  }

  /**
   * Claims a delivery for one attempt; whether it was free. The attempt counts from here, so that one that kills the
   * daemon counts too.
   */
  async claim(
    { target_id: target, event_id: event, attempts }: DeliveryRow,
    now: string,
    leaseUntil: string,
  ): Promise<boolean> {
    const { changes } = await this.#db.run`UPDATE webhooks_delivery
      SET attempts = ${attempts + 1}, lease_until = ${leaseUntil}
      WHERE target_id = ${target} AND event_id = ${event} AND state = 'pending' AND attempts = ${attempts}
        AND (lease_until IS NULL OR lease_until <= ${now})`
    return changes === 1
  }
  async settle(
    { target_id: target, event_id: event }: DeliveryRow,
    {
      state,
      dueAt,
      status,
      error,
      settledAt,
    }: {
      readonly state: DeliveryRow['state']
      readonly dueAt: string
      readonly status: number | null
      readonly error: string | null
      readonly settledAt: string | null
    },
  ): Promise<void> {
    await this.#db.run`UPDATE webhooks_delivery
      SET state = ${state}, due_at = ${dueAt}, lease_until = NULL, status = ${status}, error = ${error},
        settled_at = ${settledAt}
      WHERE target_id = ${target} AND event_id = ${event} AND state = 'pending'`
  }
  /** A dead letter waits again, behind the others. */
  revive(targetId: string, eventId: string, now: string): Statement {
    const statement = this.#db.sql`UPDATE webhooks_delivery
      SET state = 'pending', attempts = 0, due_at = ${now}, lease_until = NULL, settled_at = NULL,
        seq = (SELECT MAX(d.seq) + 1 FROM webhooks_delivery d WHERE d.target_id = ${targetId})
      WHERE target_id = ${targetId} AND event_id = ${eventId} AND state = 'dead'`
    return { ...statement, exclusive: `webhooks_delivery ${targetId}` }
  }
  /** Where only one process writes, all leases are from processes that ended. */
  async releaseAll(): Promise<void> {
    await this.#db
      .run`UPDATE webhooks_delivery SET lease_until = NULL WHERE state = 'pending' AND lease_until IS NOT NULL`
  }
  deleteSettled(before: string): Statement {
    return this.#db.sql`DELETE FROM webhooks_delivery WHERE state <> 'pending' AND settled_at < ${before}`
  }
  commit(statements: readonly Statement[]) {
    return this.#db.batch(statements)
  }
}
