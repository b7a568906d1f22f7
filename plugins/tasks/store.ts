import * as v from 'valibot'
import type { Changes, PluginDatabase, Statement } from 'svc/sdk'
import { TaskRow } from './schema.ts'
import type { Status } from './schema.ts'

const Count = v.object({ status: v.string(), count: v.union([v.number(), v.pipe(v.string(), v.transform(Number))]) })

export class TaskStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  async find(id: string): Promise<TaskRow | undefined> {
    return v.parse(v.optional(TaskRow), await this.#db.one`SELECT * FROM tasks_task WHERE id = ${id}`)
  }
  /** Newest first. */
  async list(status: Status | undefined, limit: number, offset: number): Promise<TaskRow[]> {
    return v.parse(
      v.array(TaskRow),
      status === undefined
        ? await this.#db.all`SELECT * FROM tasks_task ORDER BY created_at DESC, id LIMIT ${limit} OFFSET ${offset}`
        : await this.#db.all`SELECT * FROM tasks_task WHERE status = ${status} ORDER BY created_at DESC, id
              LIMIT ${limit} OFFSET ${offset}`,
    )
  }
  async counts(): Promise<ReadonlyMap<string, number>> {
    const rows = v.parse(
      v.array(Count),
      await this.#db.all`SELECT status, COUNT(*) AS count FROM tasks_task GROUP BY status`,
    )
    return new Map(rows.map(({ status, count }) => [status, count]))
  }

  /** Over the limit the title becomes NULL, which the column refuses, so that the batch fails as a whole. */
  insert(
    task: Pick<TaskRow, 'id' | 'title' | 'description' | 'assigned_to' | 'created_by' | 'created_at'>,
    maxOpen: number,
  ): Statement {
    return this.#db
      .sql`INSERT INTO tasks_task (id, title, description, status, assigned_to, created_by, attempts, created_at)
      VALUES (${task.id}, CASE WHEN (SELECT COUNT(*) FROM tasks_task
      WHERE status IN ('pending', 'in_progress')) < ${maxOpen} THEN ${task.title} END,
        ${task.description}, 'pending', ${task.assigned_to}, ${task.created_by}, 0, ${task.created_at})`
  }
  /**
   * Claims the oldest open task for this agent or for anyone; returns whether there was one. The condition is repeated:
   * another process may have claimed the row in between.
   */
  async claim(agentId: string, claimId: string, now: string, leaseUntil: string): Promise<TaskRow | undefined> {
    const { changes } = await this.#db
      .run`UPDATE tasks_task SET status = 'in_progress', claimed_by = ${agentId}, claim_id = ${claimId},
        claimed_at = ${now},
      lease_until = ${leaseUntil}, attempts = attempts + 1
      WHERE status = 'pending' AND id = (SELECT id FROM tasks_task WHERE status = 'pending' AND (assigned_to IS NULL
      OR assigned_to = ${agentId}) ORDER BY created_at, id LIMIT 1)`
    if (changes === 0) return undefined
    return v.parse(v.optional(TaskRow), await this.#db.one`SELECT * FROM tasks_task WHERE claim_id = ${claimId}`)
  }
  async complete(id: string, agentId: string, result: string, now: string): Promise<boolean> {
    const { changes } = await this.#db
      .run`UPDATE tasks_task SET status = 'completed', result = ${result}, completed_at = ${now}, lease_until = NULL
      WHERE id = ${id} AND status = 'in_progress' AND claimed_by = ${agentId}`
    return changes > 0
  }
  remove(id: string): Statement {
    return this.#db.sql`DELETE FROM tasks_task WHERE id = ${id}`
  }
  /** Changes one that has failed. */
  retry(id: string, assignee: string | null): Statement {
    return this.#db
      .sql`UPDATE tasks_task SET status = 'pending', assigned_to = ${assignee}, attempts = 0, claimed_by = NULL,
        claim_id = NULL, claimed_at = NULL, completed_at = NULL, result = NULL
      WHERE id = ${id} AND status = 'failed'`
  }

  /**
   * Reopens tasks that were not finished in time; one that was reopened too often fails. Then deletes those that ended
   * before `before`.
   */
  sweep(now: string, maxAttempts: number, before: string | undefined): Promise<readonly Changes[]> {
    return this.#db.batch([
      this.#db.sql`UPDATE tasks_task SET status = 'failed', completed_at = ${now}, lease_until = NULL,
          result = 'nobody finished it in time'
        WHERE status = 'in_progress' AND lease_until <= ${now} AND attempts >= ${maxAttempts}`,
      this.#db.sql`UPDATE tasks_task SET status = 'pending', claimed_by = NULL, claim_id = NULL, claimed_at = NULL,
          lease_until = NULL WHERE status = 'in_progress' AND lease_until <= ${now}`,
      ...(before === undefined
        ? []
        : [this.#db.sql`DELETE FROM tasks_task WHERE status IN ('completed', 'failed') AND completed_at < ${before}`]),
    ])
  }
  /** An agent was removed: its claimed tasks are open again, and those assigned to it have failed. */
  async release(agentId: string, now: string): Promise<void> {
    await this.#db.batch([
      this.#db.sql`UPDATE tasks_task SET status = 'failed', completed_at = ${now}, lease_until = NULL,
          result = 'the agent it was assigned to is gone'
        WHERE assigned_to = ${agentId} AND status IN ('pending', 'in_progress')`,
      this.#db.sql`UPDATE tasks_task SET status = 'pending', claimed_by = NULL, claim_id = NULL, claimed_at = NULL,
          lease_until = NULL WHERE claimed_by = ${agentId} AND status = 'in_progress'`,
    ])
  }
  commit(...statements: readonly Statement[]): Promise<readonly Changes[]> {
    return this.#db.batch(statements)
  }
}
