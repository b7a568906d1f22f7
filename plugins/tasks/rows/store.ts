import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import { StoredTask } from './row.ts'
import type { Status } from '../statuses.ts'

const number = v.pipe(v.union([v.number(), v.string()]), v.transform(Number))
const Count = v.object({ status: v.string(), count: number })
const Id = v.object({ id: v.string() })
const Total = v.object({ count: number })

/** Characters of a text in a list: a thousand of the longest texts would fill the memory. */
const LISTED_CHARS = 1_000

/** What a change of a task may set. */
export type TaskChange = Partial<
  Omit<StoredTask, 'id' | 'created_by' | 'created_at' | 'on_behalf' | 'hops' | 'revision'>
>
export interface TaskFilter {
  readonly status?: Status | undefined
  readonly assignedTo?: string | undefined
  readonly createdBy?: string | undefined
  readonly claimedBy?: string | undefined
}
export class TaskStore {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof StoredTask>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'tasks_task', key: ['id'], schema: StoredTask, log })
  }

  async find(id: string): Promise<StoredTask | undefined> {
    return this.#rows.oneOrThrow(await this.#db.one`SELECT * FROM tasks_task WHERE id = ${id}`)
  }
  /** Newest first, with the beginnings of long texts. */
  async list(filter: TaskFilter, limit: number, offset: number): Promise<StoredTask[]> {
    const { status, assignedTo = null, createdBy = null, claimedBy = null } = filter
    const found =
      status === undefined
        ? await this.#db.all`SELECT id FROM tasks_task
            WHERE created_by = COALESCE(${createdBy}, created_by)
              AND COALESCE(assigned_to, '') = COALESCE(${assignedTo}, assigned_to, '')
              AND COALESCE(claimed_by, '') = COALESCE(${claimedBy}, claimed_by, '')
            ORDER BY created_at DESC, id DESC LIMIT ${limit} OFFSET ${offset}`
        : await this.#db.all`SELECT id FROM tasks_task
            WHERE status = ${status} AND created_by = COALESCE(${createdBy}, created_by)
              AND COALESCE(assigned_to, '') = COALESCE(${assignedTo}, assigned_to, '')
              AND COALESCE(claimed_by, '') = COALESCE(${claimedBy}, claimed_by, '')
            ORDER BY created_at DESC, id DESC LIMIT ${limit} OFFSET ${offset}`
    return this.#listed(v.parse(v.array(Id), found).map(({ id }) => id))
  }
  /** In this order. */
  async #listed(ids: readonly string[]): Promise<StoredTask[]> {
    const rows = await Promise.all(
      ids.map(
        (id) => this.#db.one`SELECT id, title, SUBSTR(description, 1, ${LISTED_CHARS}) AS description, labels, status,
            assigned_to, created_by, on_behalf, claimed_by, claim_id, claimed_at, lease_until, attempts, created_at,
            completed_at, SUBSTR(result, 1, ${LISTED_CHARS}) AS result, revision, wake, turn_id, hops
          FROM tasks_task WHERE id = ${id}`,
      ),
    )
    return this.#rows.all(rows.filter((row) => row !== undefined))
  }
  /** How many a list has in all its pages. */
  /** The newest of those that this agent may see: see `isVisibleTo`. */
  async visibleTo(agentId: string, status: Status | undefined, limit: number): Promise<StoredTask[]> {
    const named = `%"${agentId}"%`
    return this.#rows.all(
      await this.#db.all`SELECT * FROM tasks_task WHERE status = COALESCE(${status ?? null}, status)
        AND (created_by = ${agentId} OR assigned_to = ${agentId} OR claimed_by = ${agentId}
          OR (assigned_to IS NULL AND status = 'pending') OR on_behalf LIKE ${named})
        ORDER BY created_at DESC, id DESC LIMIT ${limit}`,
    )
  }
  async count(filter: TaskFilter): Promise<number> {
    const { status = null, assignedTo = null, createdBy = null, claimedBy = null } = filter
    const row = await this.#db.one`SELECT COUNT(*) AS count FROM tasks_task
      WHERE status = COALESCE(${status}, status) AND created_by = COALESCE(${createdBy}, created_by)
        AND COALESCE(assigned_to, '') = COALESCE(${assignedTo}, assigned_to, '')
        AND COALESCE(claimed_by, '') = COALESCE(${claimedBy}, claimed_by, '')`
    return v.parse(Total, row).count
  }
  async counts(): Promise<Readonly<Record<Status, number>>> {
    const rows = v.parse(
      v.array(Count),
      await this.#db.all`SELECT status, COUNT(*) AS count FROM tasks_task GROUP BY status`,
    )
    const of = (wanted: Status): number => rows.find(({ status }) => status === wanted)?.count ?? 0
    return {
      pending: of('pending'),
      in_progress: of('in_progress'),
      completed: of('completed'),
      failed: of('failed'),
      cancelled: of('cancelled'),
    }
  }
  async openOf(createdBy: string): Promise<number> {
    const row = await this.#db.one`SELECT COUNT(*) AS count FROM tasks_task
      WHERE created_by = ${createdBy} AND status IN ('pending', 'in_progress')`
    return v.parse(Total, row).count
  }
  async claimedOf(agentId: string): Promise<number> {
    const row = await this.#db.one`SELECT COUNT(*) AS count FROM tasks_task
      WHERE claimed_by = ${agentId} AND status = 'in_progress'`
    return v.parse(Total, row).count
  }

  /** Over a limit the title becomes NULL, which the column refuses, so that the batch fails as a whole. */
  insert(task: StoredTask, max: { readonly open: number; readonly ofCreator: number }): Statement {
    return {
      ...this.#db.sql`INSERT INTO tasks_task (id, title, description, labels, status, assigned_to, created_by,
        on_behalf, attempts, created_at, wake, hops)
      VALUES (${task.id}, CASE
          WHEN (SELECT COUNT(*) FROM tasks_task WHERE status IN ('pending', 'in_progress')) < ${max.open}
            AND (SELECT COUNT(*) FROM tasks_task
              WHERE created_by = ${task.created_by} AND status IN ('pending', 'in_progress')) < ${max.ofCreator}
          THEN ${task.title} END,
        ${task.description}, ${task.labels}, 'pending', ${task.assigned_to}, ${task.created_by}, ${task.on_behalf},
        0, ${task.created_at}, ${task.wake}, ${task.hops})`,
      exclusive: 'tasks_task',
    }
  }
  /** Makes its batch fail when the task was changed or removed since it was read: the title would be NULL. */
  unchanged({ id, revision }: StoredTask): Statement {
    const statement = this.#db.sql`INSERT INTO tasks_task
        (id, title, description, labels, status, created_by, attempts, created_at)
      SELECT ${id}, CAST(NULL AS TEXT), '', '', '', '', 0, ''
      WHERE NOT EXISTS (SELECT 1 FROM tasks_task WHERE id = ${id} AND revision = ${revision})`
    // Or two daemons could both find it unchanged.
    return { ...statement, exclusive: `tasks_task ${id}` }
  }
  /** Together with `unchanged`. */
  update(before: StoredTask, change: TaskChange): Statement {
    const after = { ...before, ...change }
    return this.#db.sql`UPDATE tasks_task SET
        status = ${after.status}, revision = ${before.revision + 1},
        title = ${after.title}, description = ${after.description}, labels = ${after.labels},
        assigned_to = ${after.assigned_to}, claimed_by = ${after.claimed_by}, claim_id = ${after.claim_id}, claimed_at = ${after.claimed_at},
        lease_until = ${after.lease_until}, attempts = ${after.attempts}, completed_at = ${after.completed_at},
        result = ${after.result}, wake = ${after.wake}, turn_id = ${after.turn_id}
      WHERE id = ${before.id}`
  }
  /** The turn works on. */
  async renew(id: string, claimId: string, leaseUntil: string): Promise<void> {
    await this.#db.run`UPDATE tasks_task SET lease_until = ${leaseUntil}
      WHERE id = ${id} AND claim_id = ${claimId} AND status = 'in_progress'`
  }
  remove(id: string): Statement {
    return this.#db.sql`DELETE FROM tasks_task WHERE id = ${id}`
  }

  /** The oldest task that waits for this agent or for anyone. */
  async nextFor(agentId: string): Promise<StoredTask | undefined> {
    const row = await this.#db.one`SELECT * FROM tasks_task WHERE id = (SELECT id FROM tasks_task
      WHERE status = 'pending' AND (assigned_to IS NULL OR assigned_to = ${agentId}) ORDER BY created_at, id LIMIT 1)`
    return this.#rows.oneOrThrow(row)
  }
  /** Tasks whose claim has ended, those that were claimed first first. */
  async expired(now: string, limit: number): Promise<readonly StoredTask[]> {
    const rows = await this.#db.all`SELECT * FROM tasks_task
      WHERE status = 'in_progress' AND lease_until <= ${now} ORDER BY lease_until, id LIMIT ${limit}`
    return this.#rows.all(rows)
  }
  deleteEnded(before: string): Statement {
    return this.#db.sql`DELETE FROM tasks_task
      WHERE status IN ('completed', 'failed', 'cancelled') AND completed_at < ${before}`
  }
  /** An agent is removed: those assigned to it have failed. */
  failOf(agentId: string, now: string): Statement {
    return this.#db.sql`UPDATE tasks_task SET status = 'failed', completed_at = ${now}, lease_until = NULL,
        result = 'the agent it was assigned to is gone', revision = revision + 1
      WHERE assigned_to = ${agentId} AND status IN ('pending', 'in_progress')`
  }
  /** What an agent works on is open again. */
  releaseOf(agentId: string): Statement {
    return this.#db.sql`UPDATE tasks_task SET status = 'pending', claimed_by = NULL, claim_id = NULL, claimed_at = NULL,
        lease_until = NULL, revision = revision + 1
      WHERE claimed_by = ${agentId} AND status = 'in_progress'`
  }
  commit(...statements: readonly Statement[]): Promise<unknown> {
    return this.#db.batch(statements)
  }
}
