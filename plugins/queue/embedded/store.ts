import { randomUUID } from 'node:crypto'
import * as v from 'valibot'
import { v7 } from 'uuid'
import { currentActor, RowReader } from 'svc/internal'
import type { Clock } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { OwnedCount } from '../../cluster/contract.ts'
import type { Settings } from '../config.ts'
import type { JobState, NewJob } from '../contract.ts'
import type { Lost, QueueDriver, Release } from '../driver.ts'
import { Count, JobId, LaneCount, LaneName, NextDue, StoredJob, Throughput, toOwned } from '../schema.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
/** Dead jobs are kept longer than others: a person may want to run them again. */
const DEAD_RETENTION = 30

export interface EmbeddedDeps {
  readonly db: PluginDatabase
  readonly settings: Settings
  /** The same in every process on one home. */
  readonly owner: string
  readonly clock: Clock
  readonly log: Pick<Logger, 'error'>
  readonly lost: Lost
}

/** Jobs in a table of the queue, on SQLite and PostgreSQL alike. Daemons that share it need clocks that agree. */
export class EmbeddedDriver implements QueueDriver {
  readonly #deps: EmbeddedDeps
  readonly #db: PluginDatabase
  readonly #jobs: RowReader<typeof StoredJob>
  readonly #counts: RowReader<typeof LaneCount>
  constructor(deps: EmbeddedDeps) {
    this.#deps = deps
    this.#db = deps.db
    const { log } = deps
    this.#jobs = new RowReader({ table: 'queue_job', key: ['lane', 'id'], schema: StoredJob, log })
    this.#counts = new RowReader({ table: 'queue_job', key: ['lane', 'state'], schema: LaneCount, log })
  }

  get #now(): number {
    return this.#deps.clock.now()
  }
  get #leaseUntil(): number {
    return this.#now + this.#deps.settings.lease_secs * 1000
  }

  async openLane(): Promise<void> {
    /* A lane is a word in a row. */
  }

  insert(job: NewJob, added: () => void): Statement {
    const { lane, id, group, agentId, dueAt } = job
    const now = this.#now
    const statement = this.#db.sql`INSERT INTO queue_job
        (lane, id, payload, state, group_key, agent_id, failures, losses, sequence, created_at, due_at,
        origin)
      VALUES (${lane}, ${id}, ${JSON.stringify(job.payload ?? null)}, 'pending', ${group ?? null}, ${agentId ?? null},
        0, 0, ${v7()}, ${now}, ${dueAt ?? now}, ${currentActor()?.origin ?? null})
      ON CONFLICT (lane, id) DO NOTHING`
    return { ...statement, written: (changes) => void (changes > 0 && added()) }
  }

  async find(lane: string, id: string): Promise<StoredJob | undefined> {
    const row = await this.#db.one`SELECT * FROM queue_job WHERE lane = ${lane} AND id = ${id}`
    return this.#jobs.oneOrThrow(row)
  }
  async list(lane: string, state: JobState, limit: number, offset: number): Promise<readonly StoredJob[]> {
    const rows = await this.#db.all`SELECT * FROM queue_job WHERE lane = ${lane} AND state = ${state}
      ORDER BY due_at DESC, sequence DESC LIMIT ${limit} OFFSET ${offset}`
    return this.#jobs.all(rows)
  }

  /**
   * The conditions are repeated: another daemon may have claimed it in between. The unique index on groups makes the
   * slower one of two fail.
   */
  async claim(lane: string): Promise<StoredJob | undefined> {
    const claimId = randomUUID()
    const row = await this.#db.one`UPDATE queue_job
      SET state = 'running', claim_id = ${claimId}, owner = ${this.#deps.owner}, lease_until = ${this.#leaseUntil},
        hurried = 0
      WHERE lane = ${lane} AND state = 'pending' AND id = (
        SELECT waiting.id FROM queue_job AS waiting
        WHERE waiting.state = 'pending' AND waiting.lane = ${lane} AND waiting.due_at <= ${this.#now}
          AND (waiting.group_key IS NULL OR NOT EXISTS (
            SELECT 1 FROM queue_job AS other
            WHERE other.state = 'running' AND other.lane = waiting.lane AND other.group_key = waiting.group_key))
        ORDER BY waiting.due_at, waiting.sequence LIMIT 1)
      RETURNING *`
    return this.#jobs.oneOrThrow(row)
  }
  async renew(lane: string, held: readonly StoredJob[]): Promise<ReadonlySet<string>> {
    const claims = JSON.stringify(held.map(({ claim_id: claim }) => claim))
    const rows =
      this.#db.dialect === 'sqlite'
        ? await this.#db.all`UPDATE queue_job SET lease_until = ${this.#leaseUntil}
            WHERE lane = ${lane} AND state = 'running' AND claim_id IN (SELECT value FROM json_each(${claims}))
            RETURNING id`
        : await this.#db.all`UPDATE queue_job SET lease_until = ${this.#leaseUntil}
            WHERE lane = ${lane} AND state = 'running'
              AND claim_id IN (SELECT json_array_elements_text(CAST(${claims} AS json)))
            RETURNING id`
    return new Set(v.parse(v.array(JobId), rows).map(({ id }) => id))
  }
  /** The state would be NULL if the claim did not hold. On PostgreSQL the other driver may have taken the row away. */
  settle({ lane, id, claim_id: claimId }: StoredJob, release: Release): Statement {
    const { state, afterMs = 0, failures, error = null } = release
    const now = this.#now
    const settledAt = state === 'pending' ? null : now
    const update = this.#db.sql`UPDATE queue_job SET
        state = CASE WHEN state = 'running' AND claim_id = ${claimId} THEN ${state} END,
        due_at = CASE WHEN hurried = 1 THEN CAST(${now} AS BIGINT) ELSE CAST(${now + afterMs} AS BIGINT) END,
        failures = ${failures}, error = ${error}, settled_at = ${settledAt},
        claim_id = NULL, owner = NULL, lease_until = NULL
      WHERE lane = ${lane} AND id = ${id}`
    if (this.#db.dialect === 'sqlite') return update
    return {
      ...update,
      sql: `WITH settled AS (${update.sql} RETURNING 1) SELECT svc_require(COUNT(*) = 1) FROM settled`,
    }
  }
  async takeOver(isFirst: boolean): Promise<void> {
    const now = this.#now
    const owner = isFirst ? this.#deps.owner : null
    const rows = await this.#db.all`UPDATE queue_job SET
        state = 'pending', losses = losses + 1, error = 'the daemon that worked on it stopped',
        claim_id = NULL, owner = NULL, lease_until = NULL
      WHERE state = 'running' AND (lease_until <= ${now} OR owner = ${owner})
      RETURNING lane`
    for (const { lane } of v.parse(v.array(LaneName), rows)) this.#deps.lost(lane)
  }

  async owned(): Promise<readonly OwnedCount[]> {
    return toOwned(
      await this.#db.all`SELECT owner, COUNT(*) AS count FROM queue_job
        WHERE state = 'running' AND owner IS NOT NULL GROUP BY owner`,
    )
  }
  async cancel(lane: string, id: string): Promise<boolean> {
    const { changes } = await this.#db.run`UPDATE queue_job
      SET state = 'cancelled', settled_at = ${this.#now}, claim_id = NULL, owner = NULL, lease_until = NULL
      WHERE lane = ${lane} AND id = ${id} AND state IN ('pending', 'running')`
    return changes > 0
  }
  async hurry(lane: string, id: string): Promise<boolean> {
    const now = this.#now
    const { changes } = await this.#db.run`UPDATE queue_job
      SET due_at = CASE WHEN state = 'pending' THEN ${now} ELSE due_at END,
        hurried = CASE WHEN state = 'running' THEN 1 ELSE 0 END
      WHERE lane = ${lane} AND id = ${id} AND (state = 'running' OR (state = 'pending' AND due_at > ${now}))`
    return changes > 0
  }
  retry(lane: string, id: string): Statement {
    return this.#db.sql`UPDATE queue_job
      SET state = 'pending', due_at = ${this.#now}, failures = 0, losses = 0, settled_at = NULL
      WHERE lane = ${lane} AND id = ${id} AND state IN ('dead', 'cancelled')`
  }

  async nextDue(lane: string, searchedMsAgo: number): Promise<number | undefined> {
    const now = this.#now
    const row = await this.#db.one`SELECT MIN(due_at) AS due_at FROM queue_job
      WHERE state = 'pending' AND lane = ${lane} AND due_at > ${now - searchedMsAgo}`
    const { due_at: dueAt } = v.parse(NextDue, row)
    return dueAt === null ? undefined : dueAt - now
  }
  async pending(agentId?: string): Promise<number> {
    const row =
      agentId === undefined
        ? await this.#db.one`SELECT COUNT(*) AS count FROM queue_job WHERE state = 'pending'`
        : await this.#db.one`SELECT COUNT(*) AS count FROM queue_job
            WHERE state = 'pending' AND agent_id = ${agentId}`
    return v.parse(Count, row).count
  }
  async counts(): Promise<readonly LaneCount[]> {
    const rows = await this.#db.all`SELECT lane, state, COUNT(*) AS count, ${this.#now} - MIN(due_at) AS oldest_ms
      FROM queue_job GROUP BY lane, state`
    return this.#counts.all(rows)
  }
  /** Those that were given up have failed. */
  async throughput(lane: string): Promise<Throughput> {
    const minuteAgo = this.#now - MINUTE_MS
    const row = await this.#db.one`SELECT
        SUM(CASE WHEN state = 'done' AND settled_at > ${minuteAgo} THEN 1 ELSE 0 END) AS done_minute,
        SUM(CASE WHEN state = 'done' THEN 1 ELSE 0 END) AS done_hour,
        SUM(CASE WHEN state = 'dead' AND settled_at > ${minuteAgo} THEN 1 ELSE 0 END) AS failed_minute,
        SUM(CASE WHEN state = 'dead' THEN 1 ELSE 0 END) AS failed_hour
      FROM queue_job WHERE lane = ${lane} AND settled_at > ${this.#now - HOUR_MS}`
    return v.parse(Throughput, row)
  }
  async deleteOld(): Promise<void> {
    const keptMs = this.#deps.settings.retention_hours * HOUR_MS
    await this.commit([
      this.#db.sql`DELETE FROM queue_job
        WHERE state IN ('done', 'cancelled') AND settled_at < ${this.#now - keptMs}`,
      this.#db.sql`DELETE FROM queue_job WHERE state = 'dead' AND settled_at < ${this.#now - keptMs * DEAD_RETENTION}`,
    ])
  }

  /** Those that another daemon still works on with the other driver stay there until their leases end. */
  async carryOver(): Promise<boolean> {
    if (this.#db.dialect === 'sqlite') return true
    const { takeBack } = await import('../pg-boss/store.ts')
    return takeBack(this.#db)
  }
  commit(statements: readonly Statement[]): Promise<unknown> {
    return this.#db.batch(statements)
  }
  async close(): Promise<void> {
    /* It holds nothing. */
  }
}
