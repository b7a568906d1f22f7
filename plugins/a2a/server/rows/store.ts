import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'

export const openStates = ['submitted', 'working'] as const
export const endStates = ['completed', 'failed', 'canceled'] as const

export const TaskRow = v.object({
  id: v.string(),
  agent_id: v.string(),
  owner: v.string(),
  context_id: v.string(),
  session_id: v.string(),
  message_id: v.string(),
  fingerprint: v.string(),
  message: v.string(),
  state: v.picklist([...openStates, ...endStates]),
  created_at: v.string(),
  updated_at: v.string(),
})
export type TaskRow = v.InferOutput<typeof TaskRow>
export type TaskState = TaskRow['state']
export const PushRow = v.object({
  task_id: v.string(),
  id: v.string(),
  url: v.string(),
  scheme: v.nullable(v.string()),
  version: v.picklist(['0.3', '1.0']),
  created_at: v.string(),
})
export type PushRow = v.InferOutput<typeof PushRow>

export interface TaskFilter {
  readonly agentId: string | undefined
  /** `''`: any. */
  readonly owner: string
  readonly contextId: string | undefined
  readonly state: TaskState | undefined
  /** ISO 8601 UTC. */
  readonly since: string | undefined
  /** The last one of the page before. */
  readonly after: { readonly updatedAt: string; readonly id: string } | undefined
  readonly limit: number
}

const Count = v.object({ n: v.pipe(v.union([v.number(), v.string()]), v.transform(Number)) })

export class TaskStore {
  readonly #db: PluginDatabase
  readonly #tasks: RowReader<typeof TaskRow>
  readonly #pushes: RowReader<typeof PushRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#tasks = new RowReader({ table: 'a2a_task', key: ['id'], schema: TaskRow, log })
    this.#pushes = new RowReader({ table: 'a2a_push', key: ['task_id', 'id'], schema: PushRow, log })
  }
  commit(statements: readonly Statement[]) {
    return this.#db.batch(statements)
  }

  async find(id: string): Promise<TaskRow | undefined> {
    return this.#tasks.oneOrThrow(await this.#db.one`SELECT * FROM a2a_task WHERE id = ${id}`)
  }
  /** The session of a context, when it has one. */
  async sessionOf(agentId: string, owner: string, contextId: string): Promise<string | undefined> {
    const row = await this.#db.one`SELECT session_id FROM a2a_task
      WHERE agent_id = ${agentId} AND context_id = ${contextId} AND owner = ${owner} LIMIT 1`
    return v.parse(v.optional(v.object({ session_id: v.string() })), row)?.session_id
  }
  insert(row: TaskRow): Statement {
    return this.#db.sql`INSERT INTO a2a_task
        (id, agent_id, owner, context_id, session_id, message_id, fingerprint, message, state, created_at, updated_at)
      VALUES (${row.id}, ${row.agent_id}, ${row.owner}, ${row.context_id}, ${row.session_id}, ${row.message_id},
        ${row.fingerprint}, ${row.message}, ${row.state}, ${row.created_at}, ${row.updated_at})`
  }
  /** The agent works on it. */
  begin(id: string, at: string): Statement {
    return this.#db
      .sql`UPDATE a2a_task SET state = 'working', updated_at = ${at} WHERE id = ${id} AND state = 'submitted'`
  }
  /** A task ends once. */
  end(id: string, state: TaskState, at: string): Statement {
    return this.#db.sql`UPDATE a2a_task SET state = ${state}, updated_at = ${at}
      WHERE id = ${id} AND state IN ('submitted', 'working')`
  }
  /** Oldest first. */
  async open(limit: number): Promise<readonly TaskRow[]> {
    return this.#tasks.all(
      await this.#db.all`SELECT * FROM a2a_task WHERE state IN ('submitted', 'working')
        ORDER BY created_at, id LIMIT ${limit}`,
    )
  }
  /** Those that changed last come first. */
  async list({ agentId, owner, contextId, state, since, after, limit }: TaskFilter): Promise<readonly TaskRow[]> {
    const agent = agentId ?? ''
    const context = contextId ?? ''
    const [exact, from] = [state ?? '', since ?? '']
    const [at, id] = [after?.updatedAt ?? '', after?.id ?? '']
    return this.#tasks.all(
      await this.#db.all`SELECT * FROM a2a_task
        WHERE (${agent} = '' OR agent_id = ${agent}) AND (${context} = '' OR context_id = ${context})
          AND (${owner} = '' OR owner = ${owner})
          AND (${exact} = '' OR state = ${exact}) AND updated_at >= ${from}
          AND (${at} = '' OR updated_at < ${at} OR (updated_at = ${at} AND id < ${id}))
        ORDER BY updated_at DESC, id DESC LIMIT ${limit}`,
    )
  }
  async count({ agentId, owner, contextId, state, since }: Omit<TaskFilter, 'after' | 'limit'>): Promise<number> {
    const agent = agentId ?? ''
    const context = contextId ?? ''
    const [exact, from] = [state ?? '', since ?? '']
    const row = await this.#db.one`SELECT count(*) AS n FROM a2a_task
      WHERE (${agent} = '' OR agent_id = ${agent}) AND (${context} = '' OR context_id = ${context})
        AND (${owner} = '' OR owner = ${owner}) AND (${exact} = '' OR state = ${exact}) AND updated_at >= ${from}`
    return v.parse(Count, row).n
  }
  deleteOf(agentId: string): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM a2a_push WHERE task_id IN (SELECT id FROM a2a_task WHERE agent_id = ${agentId})`,
      this.#db.sql`DELETE FROM a2a_task WHERE agent_id = ${agentId}`,
    ]
  }
  /** Tasks that ended before a time. */
  async old(before: string, limit: number): Promise<readonly TaskRow[]> {
    return this.#tasks.all(
      await this.#db.all`SELECT * FROM a2a_task WHERE updated_at < ${before}
        AND state IN ('completed', 'failed', 'canceled') ORDER BY updated_at LIMIT ${limit}`,
    )
  }
  remove(id: string): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM a2a_push WHERE task_id = ${id}`,
      this.#db.sql`DELETE FROM a2a_task WHERE id = ${id}`,
    ]
  }

  /** Oldest first. */
  async pushes(taskId: string): Promise<readonly PushRow[]> {
    return this.#pushes.all(
      await this.#db.all`SELECT * FROM a2a_push WHERE task_id = ${taskId} ORDER BY created_at, id`,
    )
  }
  setPush(row: PushRow): Statement {
    return this.#db.sql`INSERT INTO a2a_push (task_id, id, url, scheme, version, created_at)
      VALUES (${row.task_id}, ${row.id}, ${row.url}, ${row.scheme}, ${row.version}, ${row.created_at})
      ON CONFLICT (task_id, id) DO UPDATE SET url = excluded.url, scheme = excluded.scheme,
        version = excluded.version`
  }
  removePush(taskId: string, id: string): Statement {
    return this.#db.sql`DELETE FROM a2a_push WHERE task_id = ${taskId} AND id = ${id}`
  }
}
