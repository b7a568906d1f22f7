import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import { Count, JobRow, NextDue } from '../job.ts'
import type { Job } from '../job.ts'

export interface JobLimits {
  readonly max_cron_jobs: number
  readonly max_jobs_per_agent: number
}
export interface JobFilter {
  readonly agentId?: string | undefined
  readonly enabled?: boolean | undefined
  /** Also those that have ended. */
  readonly ended?: boolean | undefined
}
/** How a run changes its job. */
export interface RunEnd {
  readonly at: number
  readonly status: string
  /** Consecutive failures from now on; as they are when absent. */
  readonly failures?: number | undefined
  /** Disables it, and says why. */
  readonly disable?: string | undefined
  /** It has done what it was for. */
  readonly ends?: boolean | undefined
}

/** SQL of the jobs. */
export class JobStore {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof JobRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'schedules_job', key: ['id'], schema: JobRow, log })
  }

  /** Over a limit the name becomes NULL, which the column refuses, so that the batch fails as a whole. */
  insert(job: Job, { max_cron_jobs: max, max_jobs_per_agent: maxOfAgent }: JobLimits): Statement {
    return {
      ...this.#db.sql`INSERT INTO schedules_job (id, name, agent_id, timing, action, targets, missed, session_mode,
        one_shot, enabled, version, next_run, planned_at, failures, runs, created_by, on_behalf, labels,
        hops, created_at, updated_at)
      VALUES (${job.id}, CASE WHEN
          (SELECT COUNT(*) FROM schedules_job WHERE ended_at IS NULL) < ${max} AND
          (SELECT COUNT(*) FROM schedules_job WHERE ended_at IS NULL AND agent_id = ${job.agentId}) < ${maxOfAgent}
        THEN ${job.name} END,
        ${job.agentId}, ${JSON.stringify(job.timing)}, ${JSON.stringify(job.action)}, ${JSON.stringify(job.targets)},
        ${job.missed}, ${job.sessionMode ?? null}, ${Number(job.oneShot)}, ${Number(job.enabled)}, 1,
        ${job.nextRun ?? null}, ${job.updatedAt}, 0, 0, ${job.createdBy ?? null}, ${JSON.stringify(job.onBehalf)},
        ${JSON.stringify(job.labels)},
        ${job.hops}, ${job.createdAt}, ${job.updatedAt})`,
      exclusive: 'schedules_job',
    }
  }
  /** Makes its batch fail when the job has changed since it was read. */
  update(job: Job): Statement {
    return this.#db.sql`UPDATE schedules_job SET
        version = CASE WHEN version = ${job.version} THEN version + 1 END,
        name = ${job.name}, agent_id = ${job.agentId}, timing = ${JSON.stringify(job.timing)},
        action = ${JSON.stringify(job.action)}, targets = ${JSON.stringify(job.targets)}, missed = ${job.missed},
        session_mode = ${job.sessionMode ?? null}, one_shot = ${Number(job.oneShot)}, enabled = ${Number(job.enabled)},
        next_run = ${job.nextRun ?? null}, planned_at = ${job.updatedAt}, failures = ${job.failures},
        reason = ${job.reason ?? null}, ended_at = ${job.endedAt ?? null}, updated_at = ${job.updatedAt}
      WHERE id = ${job.id}`
  }
  /** What it does and when, whatever a run that ends at the same moment writes. */
  rewrite(job: Job): Statement {
    return this.#db.sql`UPDATE schedules_job SET
        version = version + 1, timing = ${JSON.stringify(job.timing)}, action = ${JSON.stringify(job.action)},
        next_run = CASE WHEN enabled = 1 THEN CAST(${job.nextRun ?? null} AS BIGINT) END,
        planned_at = ${job.updatedAt}, updated_at = ${job.updatedAt}
      WHERE id = ${job.id} AND ended_at IS NULL`
  }
  /** As `update`, for the next slot alone, which is no change that somebody made. */
  advance({ id, version }: Job, nextRun: number | undefined, now: number): Statement {
    return this.#db.sql`UPDATE schedules_job SET
        version = CASE WHEN version = ${version} THEN version + 1 END,
        next_run = ${nextRun ?? null}, planned_at = ${now}
      WHERE id = ${id}`
  }
  /** Does not ask for the version: what somebody changed during the run stays, and so does what they disabled. */
  ran({ id, failures }: Job, { at, status, failures: now = failures, disable, ends = false }: RunEnd): Statement {
    const stops = Number(disable !== undefined || ends)
    const reason = disable ?? (ends ? 'it was to succeed once, and did' : null)
    return this.#db.sql`UPDATE schedules_job SET
        version = version + 1, last_run = ${at}, last_status = ${status}, failures = ${now}, runs = runs + 1,
        enabled = CASE WHEN ${stops} = 1 THEN 0 ELSE enabled END,
        next_run = CASE WHEN ${stops} = 1 THEN NULL ELSE next_run END,
        reason = CASE WHEN ${stops} = 1 THEN ${reason} ELSE reason END,
        ended_at = CASE WHEN ${Number(ends)} = 1 THEN ${at} ELSE ended_at END
      WHERE id = ${id}`
  }
  remove(id: string): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM schedules_slot WHERE job_id = ${id}`,
      this.#db.sql`DELETE FROM schedules_job WHERE id = ${id}`,
    ]
  }
  /** For the batch that removes an agent. */
  endOf(agentId: string, now: number): Statement {
    return this.#db.sql`UPDATE schedules_job SET version = version + 1, enabled = 0, next_run = NULL,
        reason = 'its agent was removed', ended_at = ${now}
      WHERE agent_id = ${agentId} AND ended_at IS NULL`
  }

  async find(id: string): Promise<Job | undefined> {
    return this.#rows.oneOrThrow(await this.#db.one`SELECT * FROM schedules_job WHERE id = ${id}`)
  }
  /** Oldest first. */
  async list({ agentId, enabled, ended = false }: JobFilter, limit: number, offset = 0): Promise<readonly Job[]> {
    const agent = agentId ?? null
    const isOn = enabled === undefined ? null : Number(enabled)
    return this.#rows.all(
      await this.#db.all`SELECT * FROM schedules_job
        WHERE (CAST(${agent} AS TEXT) IS NULL OR agent_id = ${agent})
          AND (CAST(${isOn} AS INTEGER) IS NULL OR enabled = ${isOn})
          AND (${Number(ended)} = 1 OR ended_at IS NULL)
        ORDER BY created_at, id LIMIT ${limit} OFFSET ${offset}`,
    )
  }
  /** Those that are for an agent, or that it made; oldest first. */
  async ofAgent(agentId: string, limit: number): Promise<readonly Job[]> {
    return this.#rows.all(
      await this.#db.all`SELECT * FROM schedules_job
        WHERE (agent_id = ${agentId} OR created_by = ${agentId}) AND ended_at IS NULL
        ORDER BY created_at, id LIMIT ${limit}`,
    )
  }
  async count({ agentId, enabled, ended = false }: JobFilter): Promise<number> {
    const agent = agentId ?? null
    const isOn = enabled === undefined ? null : Number(enabled)
    const row = await this.#db.one`SELECT COUNT(*) AS count FROM schedules_job
      WHERE (CAST(${agent} AS TEXT) IS NULL OR agent_id = ${agent})
        AND (CAST(${isOn} AS INTEGER) IS NULL OR enabled = ${isOn})
        AND (${Number(ended)} = 1 OR ended_at IS NULL)`
    return v.parse(Count, row).count
  }
  due(now: number, limit: number): Promise<readonly Job[]> {
    return this.#firstPage(
      limit,
      (offset) => this.#db.all`SELECT * FROM schedules_job WHERE enabled = 1 AND next_run <= ${now}
        ORDER BY next_run, id LIMIT ${limit} OFFSET ${offset}`,
    )
  }
  /** When the next job after a moment is due. Those before it that are still there cannot be read. */
  async nextDue(after: number): Promise<number | undefined> {
    const row = await this.#db.one`SELECT MIN(next_run) AS next_run FROM schedules_job
      WHERE enabled = 1 AND next_run > ${after}`
    return v.parse(NextDue, row).next_run
  }
  /** Jobs whose next slot was computed when the clock showed a later time than it does now. */
  plannedAfter(now: number, limit: number): Promise<readonly Job[]> {
    return this.#firstPage(
      limit,
      (offset) => this.#db.all`SELECT * FROM schedules_job
        WHERE enabled = 1 AND planned_at > ${now} AND next_run IS NOT NULL ORDER BY id LIMIT ${limit} OFFSET ${offset}`,
    )
  }
  /** The first page with a job that can be read: a page of others must not hide those behind it. Empty: no more. */
  async #firstPage(limit: number, read: (offset: number) => Promise<readonly unknown[]>): Promise<readonly Job[]> {
    for (let offset = 0; ; offset += limit) {
      const rows = await read(offset)
      const jobs = this.#rows.all(rows)
      if (jobs.length > 0 || rows.length < limit) return jobs
    }
  }
  deleteEnded(before: number): readonly Statement[] {
    return [
      this.#db
        .sql`DELETE FROM schedules_slot WHERE job_id IN (SELECT id FROM schedules_job WHERE ended_at < ${before})`,
      this.#db.sql`DELETE FROM schedules_job WHERE ended_at < ${before}`,
    ]
  }
  async commit(statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}
