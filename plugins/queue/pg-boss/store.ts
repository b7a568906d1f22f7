import * as v from 'valibot'
import { currentActor, RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { OwnedCount } from '../../cluster/contract.ts'
import type { JobState, NewJob } from '../contract.ts'
import type { Release } from '../driver.ts'
import { Count, JobId, LaneCount, LaneName, NextDue, Throughput, toOwned } from '../schema.ts'
import type { StoredJob } from '../schema.ts'
import { attemptOf, clean, Fetched, Row, rowId, rowStates, toClaimed, toStored } from './row.ts'
import type { Claimed, Data } from './row.ts'

/** Seconds. pg-boss ends jobs that are active for longer; those of svc may run as long as their leases are renewed. */
const NEVER = 2_147_483_647
/** Dead jobs are kept longer than others: a person may want to run them again. */
const DEAD_RETENTION = 30
/** Seconds. pg-boss takes no shorter one. */
const MIN_HEARTBEAT_SECS = 10

/**
 * For the bound of jobs per agent, which is asked with every new job. Made once and under a lock: it keeps everybody
 * from the table meanwhile.
 */
export const AGENT_INDEX = `BEGIN;
  SELECT pg_advisory_xact_lock(hashtext('queue_pgboss_job_agent'));
  DO $$ BEGIN
    IF to_regclass('queue_pgboss.queue_pgboss_job_agent') IS NULL THEN
      CREATE INDEX queue_pgboss_job_agent ON queue_pgboss.job ((data->>'agent')) WHERE state < 'active';
    END IF;
  END $$;
  COMMIT`

export interface PgBossStoreDeps {
  readonly db: PluginDatabase
  readonly owner: string
  readonly leaseSecs: number
  readonly retentionSecs: number
  readonly log: Pick<Logger, 'error'>
}

/**
 * The statements of the queue on the table of pg-boss, which its documentation opens to SQL: those that are committed
 * with the work of others, and what its functions do not offer. Time is that of the server, but for `dueAt`.
 *
 * `created_on` is when a job is due, because jobs are fetched in its order. `singleton_key` is the group: of the jobs
 * with one key and the policy `singleton` only one is active. A job that was given back is in `retry`, a dead one in
 * `failed`.
 */
export class PgBossStore {
  readonly #deps: PgBossStoreDeps
  readonly #db: PluginDatabase
  readonly #jobs: RowReader<typeof Row>
  readonly #fetched: RowReader<typeof Fetched>
  /** Of the jobs that are due at the same time the first to be added is the first to run. */
  #sequence = 0

  constructor(deps: PgBossStoreDeps) {
    this.#deps = deps
    this.#db = deps.db
    const job = { table: 'queue_pgboss.job', key: ['name', 'id'], log: deps.log }
    this.#jobs = new RowReader({ ...job, schema: Row })
    this.#fetched = new RowReader({ ...job, schema: Fetched, effect: 'is not run' })
  }

  /** `createLane`: also makes the queue of its lane if it is missing. */
  insert(job: NewJob, createLane: boolean, added: () => void): Statement {
    const { lane, id, group, agentId, dueAt } = job
    const origin = currentActor()?.origin
    const data: Data = {
      id: clean(id),
      payload: JSON.stringify(job.payload ?? null),
      ...(group !== undefined && { group: clean(group) }),
      ...(agentId !== undefined && { agent: clean(agentId) }),
      ...(origin !== undefined && { origin: clean(origin) }),
      created: Date.now(),
      failures: 0,
      settled: 0,
      losses: 0,
    }
    const { retentionSecs } = this.#deps
    this.#sequence = (this.#sequence + 1) % 1_000
    const statement = this.#db.sql`INSERT INTO queue_pgboss.job (name, id, data, policy, singleton_key, start_after,
        created_on, keep_until, retry_limit, expire_seconds, deletion_seconds, heartbeat_seconds)
      SELECT CAST(${lane} AS text), CAST(${rowId(id)} AS uuid), CAST(${JSON.stringify(data)} AS jsonb),
        CAST(${group === undefined ? null : 'singleton'} AS text), CAST(${group ?? null} AS text),
        COALESCE(due.at, now()),
        COALESCE(due.at + CAST(${this.#sequence} AS int) * interval '1 microsecond', clock_timestamp()),
        'infinity', CAST(${NEVER} AS int), CAST(${NEVER} AS int), CAST(${retentionSecs} AS int),
        CAST(${this.heartbeatSecs} AS int)
      FROM (SELECT to_timestamp(CAST(${dueAt ?? null} AS double precision) / 1000) AS at,
        CASE WHEN CAST(${createLane ? 1 : 0} AS int) = 1
          THEN queue_pgboss.create_queue(${lane}, '{"policy": "singleton"}') END AS lane) AS due
      ON CONFLICT DO NOTHING`
    return { ...statement, written: (changes) => void (changes > 0 && added()) }
  }

  async find(lane: string, id: string): Promise<StoredJob | undefined> {
    const row = await this.#db
      .one`SELECT name, id, data, state, retry_count, start_after, started_on, completed_on, output
      FROM queue_pgboss.job WHERE name = ${lane} AND id = CAST(${rowId(id)} AS uuid)`
    const read = this.#jobs.oneOrThrow(row)
    return read && toStored(read)
  }
  async list(lane: string, state: JobState, limit: number, offset: number): Promise<readonly StoredJob[]> {
    const rows = await this.#db
      .all`SELECT name, id, data, state, retry_count, start_after, started_on, completed_on, output
      FROM queue_pgboss.job WHERE name = ${lane} AND state = ANY (CAST(${`{${rowStates(state).join()}}`} AS
        queue_pgboss.job_state[]))
      ORDER BY start_after DESC, created_on DESC LIMIT ${limit} OFFSET ${offset}`
    return this.#jobs.all(rows).map(toStored)
  }

  /** What `fetch` of pg-boss gave; `undefined` when it cannot be read. */
  readClaimed(fetched: unknown): Claimed | undefined {
    const read = this.#fetched.one(fetched)
    return read && toClaimed(read)
  }
  /**
   * Gives a job back that was claimed before another one of its group that was due earlier; whether it did. Two daemons
   * that claim at the same moment skip what the other one has locked. Whoever has a job of a group decides alone.
   */
  async yieldToEarlier(job: StoredJob): Promise<boolean> {
    const { changes } = await this.#db.run`UPDATE queue_pgboss.job AS claimed SET state = 'retry',
        data = data || jsonb_build_object('settled', CAST(data->>'settled' AS int) + 1)
      WHERE name = ${job.lane} AND id = CAST(${rowId(job.id)} AS uuid) AND state = 'active'
        AND retry_count = ${attemptOf(job)}
        AND EXISTS (SELECT 1 FROM queue_pgboss.job AS earlier
          WHERE earlier.name = claimed.name AND earlier.singleton_key = claimed.singleton_key
            AND earlier.state < 'active' AND earlier.created_on < claimed.created_on AND earlier.start_after <= now())`
    return changes > 0
  }
  /** Of the jobs that this daemon adds and claims. */
  get heartbeatSecs(): number {
    return Math.max(this.#deps.leaseSecs, MIN_HEARTBEAT_SECS)
  }
  async setHeartbeat(job: StoredJob): Promise<void> {
    await this.#db.run`UPDATE queue_pgboss.job SET heartbeat_seconds = ${this.heartbeatSecs}
      WHERE name = ${job.lane} AND id = CAST(${rowId(job.id)} AS uuid) AND state = 'active'
        AND retry_count = ${attemptOf(job)}`
  }
  /** Whose a job is stands in it from its first renewal on. */
  async renew(lane: string, held: readonly StoredJob[]): Promise<ReadonlySet<string>> {
    const claims = held.map((job) => `${rowId(job.id)} ${attemptOf(job)}`)
    const ids = held.map(({ id }) => rowId(id))
    const rows = await this.#db.all`UPDATE queue_pgboss.job SET heartbeat_on = now(),
        data = data || jsonb_build_object('owner', CAST(${this.#deps.owner} AS text))
      WHERE name = ${lane} AND state = 'active' AND id = ANY (CAST(${`{${ids.join()}}`} AS uuid[]))
        AND replace(CAST(id AS text), '-', '') || ' ' || retry_count = ANY (CAST(${`{${claims.join()}}`} AS text[]))
      RETURNING data->>'id' AS id`
    return new Set(v.parse(v.array(JobId), rows).map(({ id }) => id))
  }
  async owned(): Promise<readonly OwnedCount[]> {
    const rows = await this.#db.all`SELECT data->>'owner' AS owner, count(*) AS count FROM queue_pgboss.job
      WHERE state = 'active' AND data->>'owner' IS NOT NULL GROUP BY 1`
    return toOwned(rows)
  }
  settle(job: StoredJob, { state, failures, afterMs = 0, error }: Release): Statement {
    const attempt = attemptOf(job)
    const data = JSON.stringify({ failures, settled: attempt - job.losses + 1, losses: job.losses })
    const output = error === undefined ? null : JSON.stringify({ error: clean(error) })
    if (state === 'pending')
      return this.#db.sql`WITH settled AS (UPDATE queue_pgboss.job SET
          state = 'retry', data = (data || CAST(${data} AS jsonb)) - 'hurried' - 'owner', output = CAST(${output} AS jsonb),
          start_after = now() + CASE WHEN data->>'hurried' IS NULL THEN CAST(${afterMs} AS bigint) ELSE 0 END
            * interval '1 millisecond',
          created_on = now() + CASE WHEN data->>'hurried' IS NULL THEN CAST(${afterMs} AS bigint) ELSE 0 END
            * interval '1 millisecond'
        WHERE name = ${job.lane} AND id = CAST(${rowId(job.id)} AS uuid) AND state = 'active'
          AND retry_count = ${attempt} RETURNING 1)
      SELECT svc_require(COUNT(*) = 1) FROM settled`
    return this.#db.sql`WITH settled AS (UPDATE queue_pgboss.job SET
        state = CAST(${rowStates(state)[0] ?? null} AS queue_pgboss.job_state), completed_on = now(),
        data = data || CAST(${data} AS jsonb), output = CAST(${output} AS jsonb),
        deletion_seconds = deletion_seconds * CAST(${state === 'dead' ? DEAD_RETENTION : 1} AS int)
      WHERE name = ${job.lane} AND id = CAST(${rowId(job.id)} AS uuid) AND state = 'active'
        AND retry_count = ${attempt} RETURNING 1)
    SELECT svc_require(COUNT(*) = 1) FROM settled`
  }

  async cancel(lane: string, id: string): Promise<boolean> {
    const { changes } = await this.#db.run`UPDATE queue_pgboss.job SET state = 'cancelled', completed_on = now(),
        data = CASE WHEN state = 'active' THEN data || jsonb_build_object('settled',
          CAST(data->>'settled' AS int) + 1) ELSE data END
      WHERE name = ${lane} AND id = CAST(${rowId(id)} AS uuid) AND state IN ('created', 'retry', 'active')`
    return changes > 0
  }
  async hurry(lane: string, id: string): Promise<boolean> {
    const { changes } = await this.#db.run`UPDATE queue_pgboss.job SET
        data = CASE WHEN state = 'active' THEN data || '{"hurried": true}' ELSE data END,
        start_after = CASE WHEN state = 'active' THEN start_after ELSE now() END,
        created_on = CASE WHEN state = 'active' THEN created_on ELSE now() END
      WHERE name = ${lane} AND id = CAST(${rowId(id)} AS uuid)
        AND (state = 'active' OR (state IN ('created', 'retry') AND start_after > now()))`
    return changes > 0
  }
  retry(lane: string, id: string): Statement {
    return this.#db.sql`UPDATE queue_pgboss.job SET state = 'retry', start_after = now(), created_on = now(),
        completed_on = NULL, deletion_seconds = ${this.#deps.retentionSecs},
        data = data || jsonb_build_object('failures', 0, 'losses', 0,
          'settled', CASE WHEN started_on IS NULL THEN 0 ELSE retry_count + 1 END)
      WHERE name = ${lane} AND id = CAST(${rowId(id)} AS uuid) AND state IN ('failed', 'cancelled')`
  }

  async nextDue(lane: string, searchedMsAgo: number): Promise<number | undefined> {
    const row = await this.#db.one`SELECT date_part('epoch', MIN(start_after) - now()) * 1000 AS due_at
      FROM queue_pgboss.job WHERE name = ${lane} AND state IN ('created', 'retry')
        AND start_after > now() - CAST(${searchedMsAgo} AS bigint) * interval '1 millisecond'`
    const { due_at: dueIn } = v.parse(NextDue, row)
    return dueIn === null ? undefined : Math.ceil(dueIn)
  }
  async pending(agentId?: string): Promise<number> {
    const row =
      agentId === undefined
        ? await this.#db.one`SELECT COUNT(*) AS count FROM queue_pgboss.job WHERE state IN ('created', 'retry')`
        : await this.#db.one`SELECT COUNT(*) AS count FROM queue_pgboss.job
            WHERE state < 'active' AND data->>'agent' = ${agentId}`
    return v.parse(Count, row).count
  }
  async counts(): Promise<readonly LaneCount[]> {
    const rows = await this.#db.all`SELECT name AS lane,
        CASE WHEN state < 'active' THEN 'pending' WHEN state = 'active' THEN 'running' ELSE 'dead' END AS state,
        COUNT(*) AS count, date_part('epoch', now() - MIN(start_after)) * 1000 AS oldest_ms
      FROM queue_pgboss.job WHERE state IN ('created', 'retry', 'active', 'failed') GROUP BY 1, 2`
    return v.parse(v.array(LaneCount), rows)
  }
  /** Those that were given up have failed. */
  async throughput(lane: string): Promise<Throughput> {
    const row = await this.#db.one`SELECT
        COUNT(*) FILTER (WHERE state = 'completed' AND completed_on > now() - interval '1 minute') AS done_minute,
        COUNT(*) FILTER (WHERE state = 'completed') AS done_hour,
        COUNT(*) FILTER (WHERE state = 'failed' AND completed_on > now() - interval '1 minute') AS failed_minute,
        COUNT(*) FILTER (WHERE state = 'failed') AS failed_hour
      FROM queue_pgboss.job WHERE name = ${lane} AND completed_on > now() - interval '1 hour'`
    return v.parse(Throughput, row)
  }

  /** The lanes of jobs that the embedded driver left. */
  async lanesLeft(): Promise<readonly string[]> {
    const rows = await this.#db.all`SELECT DISTINCT lane FROM queue_job`
    return v.parse(v.array(LaneName), rows).map(({ lane }) => lane)
  }
  /** Moves the jobs of the embedded driver here, but for those that run. What ended is needed too: ids stay unique. */
  async takeOverEmbedded(now: number): Promise<void> {
    const { retentionSecs } = this.#deps
    await this.#db.run`WITH moved AS (
        DELETE FROM queue_job WHERE state <> 'running' OR lease_until <= ${now} RETURNING *)
      INSERT INTO queue_pgboss.job (name, id, data, state, policy, singleton_key, start_after, created_on,
        completed_on, output, keep_until, retry_limit, expire_seconds, deletion_seconds, heartbeat_seconds)
      SELECT lane, CAST(left(encode(sha256(convert_to(id, 'UTF8')), 'hex'), 32) AS uuid),
        jsonb_strip_nulls(jsonb_build_object('id', id, 'payload', payload, 'group', group_key, 'agent', agent_id,
          'origin', origin, 'created', created_at, 'failures', failures,
          'settled', -losses - CASE WHEN state = 'running' THEN 1 ELSE 0 END, 'losses', losses)),
        CAST(CASE state WHEN 'done' THEN 'completed' WHEN 'dead' THEN 'failed' WHEN 'cancelled' THEN 'cancelled'
          ELSE 'created' END AS queue_pgboss.job_state),
        CASE WHEN group_key IS NOT NULL THEN 'singleton' END, group_key,
        to_timestamp(due_at / 1000.0),
        to_timestamp(due_at / 1000.0) + row_number() OVER (ORDER BY sequence) % 1000 * interval '1 microsecond',
        to_timestamp(settled_at / 1000.0), jsonb_strip_nulls(jsonb_build_object('error', error)),
        'infinity', CAST(${NEVER} AS int), CAST(${NEVER} AS int),
        CAST(${retentionSecs} AS int) * CASE WHEN state = 'dead' THEN CAST(${DEAD_RETENTION} AS int) ELSE 1 END,
        CAST(${this.heartbeatSecs} AS int)
      FROM moved ON CONFLICT DO NOTHING`
  }
}

/** Moves the jobs of pg-boss to the embedded driver, but for those that run; whether none is left. */
export async function takeBack(db: PluginDatabase): Promise<boolean> {
  const found = await db.one<{ found: unknown }>`SELECT to_regclass('queue_pgboss.job') AS found`
  if (found?.found === null) return true
  await db.run`WITH moved AS (
      DELETE FROM queue_pgboss.job
      WHERE state <> 'active' OR heartbeat_on + heartbeat_seconds * interval '1 second' < now() RETURNING *)
    INSERT INTO queue_job (lane, id, payload, state, group_key, agent_id, failures, losses, sequence, created_at,
      due_at, settled_at, error, origin)
    SELECT name, data->>'id', data->>'payload',
      CASE state WHEN 'completed' THEN 'done' WHEN 'failed' THEN 'dead' WHEN 'cancelled' THEN 'cancelled'
        ELSE 'pending' END,
      data->>'group', data->>'agent', CAST(data->>'failures' AS bigint),
      CASE WHEN started_on IS NULL THEN 0 ELSE retry_count + 1 END - CAST(data->>'settled' AS bigint),
      to_char(created_on, 'YYYYMMDDHH24MISSUS'), CAST(data->>'created' AS bigint),
      CAST(trunc(CAST(date_part('epoch', start_after) AS numeric) * 1000) AS bigint),
      CAST(trunc(CAST(date_part('epoch', completed_on) AS numeric) * 1000) AS bigint),
      output->>'error', data->>'origin'
    FROM moved ON CONFLICT DO NOTHING`
  const left = await db.one`SELECT COUNT(*) AS count FROM queue_pgboss.job`
  return v.parse(Count, left).count === 0
}
