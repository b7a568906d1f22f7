import * as v from 'valibot'
import { v7 } from 'uuid'
import { currentActor } from 'svc/internal'
import type { PluginDatabase, Statement } from 'svc/sdk'
import type { JobState, NewJob } from './contract.ts'
import { Count, LaneCount, NextDue, StoredJob, Throughput } from './schema.ts'

export interface Claim {
  readonly claimId: string
  readonly owner: string
  readonly leaseUntil: number
}
/** How a claimed job goes on. */
export interface Release {
  readonly state: JobState
  readonly dueAt?: number
  readonly failures: number
  readonly error?: string
}

export class JobStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  insert(job: NewJob, now: number, added: () => void): Statement {
    const { lane, id, group, agentId, dueAt } = job
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
    return v.parse(v.optional(StoredJob), row)
  }
  /** Newest first. */
  async list(lane: string, state: JobState, limit: number, offset: number): Promise<readonly StoredJob[]> {
    const rows = await this.#db.all`SELECT * FROM queue_job WHERE lane = ${lane} AND state = ${state}
      ORDER BY due_at DESC, sequence DESC LIMIT ${limit} OFFSET ${offset}`
    return v.parse(v.array(StoredJob), rows)
  }

  /**
   * Claims the job of a lane that is due first and whose group has none that runs. The conditions are repeated: another
   * daemon may have claimed it in between. The unique index on groups makes the slower one of two fail.
   */
  async claim(lane: string, { claimId, owner, leaseUntil }: Claim, now: number): Promise<StoredJob | undefined> {
    const { changes } = await this.#db.run`UPDATE queue_job
      SET state = 'running', claim_id = ${claimId}, owner = ${owner}, lease_until = ${leaseUntil}, hurried = 0
      WHERE lane = ${lane} AND state = 'pending' AND id = (
        SELECT waiting.id FROM queue_job AS waiting
        WHERE waiting.state = 'pending' AND waiting.lane = ${lane} AND waiting.due_at <= ${now}
          AND (waiting.group_key IS NULL OR NOT EXISTS (
            SELECT 1 FROM queue_job AS other
            WHERE other.state = 'running' AND other.lane = waiting.lane AND other.group_key = waiting.group_key))
        ORDER BY waiting.due_at, waiting.sequence LIMIT 1)`
    if (changes === 0) return undefined
    const row = await this.#db.one`SELECT * FROM queue_job WHERE lane = ${lane} AND claim_id = ${claimId}`
    return v.parse(v.optional(StoredJob), row)
  }
  /** Whether the claim still holds. */
  async renew(lane: string, id: string, claimId: string, leaseUntil: number): Promise<boolean> {
    const { changes } = await this.#db.run`UPDATE queue_job SET lease_until = ${leaseUntil}
      WHERE lane = ${lane} AND id = ${id} AND claim_id = ${claimId} AND state = 'running'`
    return changes > 0
  }
  /** Makes its batch fail when the claim does not hold any more: the state would be NULL. */
  settle(lane: string, id: string, claimId: string, release: Release, now: number): Statement {
    const { state, dueAt = now, failures, error = null } = release
    const settledAt = state === 'pending' ? null : now
    return this.#db.sql`UPDATE queue_job SET
        state = CASE WHEN state = 'running' AND claim_id = ${claimId} THEN ${state} END,
        due_at = CASE WHEN hurried = 1 THEN CAST(${now} AS BIGINT) ELSE CAST(${dueAt} AS BIGINT) END, failures = ${failures}, error = ${error}, settled_at = ${settledAt},
        claim_id = NULL, owner = NULL, lease_until = NULL
      WHERE lane = ${lane} AND id = ${id}`
  }
  async cancel(lane: string, id: string, now: number): Promise<boolean> {
    const { changes } = await this.#db.run`UPDATE queue_job
      SET state = 'cancelled', settled_at = ${now}, claim_id = NULL, owner = NULL, lease_until = NULL
      WHERE lane = ${lane} AND id = ${id} AND state IN ('pending', 'running')`
    return changes > 0
  }
  async hurry(lane: string, id: string, now: number): Promise<boolean> {
    const { changes } = await this.#db.run`UPDATE queue_job
      SET due_at = CASE WHEN state = 'pending' THEN ${now} ELSE due_at END,
        hurried = CASE WHEN state = 'running' THEN 1 ELSE 0 END
      WHERE lane = ${lane} AND id = ${id} AND (state = 'running' OR (state = 'pending' AND due_at > ${now}))`
    return changes > 0
  }
  /** Runs a dead or cancelled job again. */
  retry(lane: string, id: string, now: number): Statement {
    return this.#db.sql`UPDATE queue_job
      SET state = 'pending', due_at = ${now}, failures = 0, losses = 0, settled_at = NULL
      WHERE lane = ${lane} AND id = ${id} AND state IN ('dead', 'cancelled')`
  }

  /** Jobs of a lane whose lease has ended, or all that this owner has when `owner` is given. */
  async lost(lane: string, now: number, owner: string | undefined): Promise<readonly StoredJob[]> {
    const rows =
      owner === undefined
        ? await this.#db.all`SELECT * FROM queue_job
            WHERE state = 'running' AND lane = ${lane} AND lease_until <= ${now}`
        : await this.#db.all`SELECT * FROM queue_job
            WHERE state = 'running' AND lane = ${lane} AND (owner = ${owner} OR lease_until <= ${now})`
    return v.parse(v.array(StoredJob), rows)
  }
  /** Another daemon may have done it already: then the claim is another one, and the batch fails. */
  lose(job: StoredJob, state: 'pending' | 'dead', error: string, now: number): Statement {
    return this.#db.sql`UPDATE queue_job SET
        state = CASE WHEN state = 'running' AND claim_id = ${job.claim_id} THEN ${state} END,
        losses = losses + 1, error = ${error}, settled_at = ${state === 'dead' ? now : null},
        claim_id = NULL, owner = NULL, lease_until = NULL
      WHERE lane = ${job.lane} AND id = ${job.id}`
  }

  /** When the next job of a lane is due. */
  async nextDue(lane: string): Promise<number | undefined> {
    const row = await this.#db.one`SELECT MIN(due_at) AS due_at FROM queue_job
      WHERE state = 'pending' AND lane = ${lane}`
    return v.parse(NextDue, row).due_at ?? undefined
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
    const rows = await this.#db.all`SELECT lane, state, COUNT(*) AS count, MIN(due_at) AS oldest
      FROM queue_job GROUP BY lane, state`
    return v.parse(v.array(LaneCount), rows)
  }
  /** Those that were given up have failed. */
  async throughput(lane: string, minuteAgo: number, hourAgo: number): Promise<Throughput> {
    const row = await this.#db.one`SELECT
        SUM(CASE WHEN state = 'done' AND settled_at > ${minuteAgo} THEN 1 ELSE 0 END) AS done_minute,
        SUM(CASE WHEN state = 'done' THEN 1 ELSE 0 END) AS done_hour,
        SUM(CASE WHEN state = 'dead' AND settled_at > ${minuteAgo} THEN 1 ELSE 0 END) AS failed_minute,
        SUM(CASE WHEN state = 'dead' THEN 1 ELSE 0 END) AS failed_hour
      FROM queue_job WHERE lane = ${lane} AND settled_at > ${hourAgo}`
    return v.parse(Throughput, row)
  }
  deleteSettled(before: number, deadBefore: number): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM queue_job WHERE state IN ('done', 'cancelled') AND settled_at < ${before}`,
      this.#db.sql`DELETE FROM queue_job WHERE state = 'dead' AND settled_at < ${deadBefore}`,
    ]
  }
  commit(statements: readonly Statement[]): Promise<unknown> {
    return this.#db.batch(statements)
  }
}
