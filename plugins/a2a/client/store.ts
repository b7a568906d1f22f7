import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import { AgentRow, SentRow } from './model.ts'
import type { ExternalAgent, SentTask } from './model.ts'

const Count = v.object({ n: v.pipe(v.union([v.number(), v.string()]), v.transform(Number)) })
const text = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))

/** SQL of agents elsewhere. */
export class AgentStore {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof AgentRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'a2a_agent', key: ['id'], schema: AgentRow, log })
  }

  async list(): Promise<readonly ExternalAgent[]> {
    return this.#rows.all(await this.#db.all`SELECT * FROM a2a_agent ORDER BY discovered_at, id`)
  }
  async find(id: string): Promise<ExternalAgent | undefined> {
    return this.#rows.oneOrThrow(await this.#db.one`SELECT * FROM a2a_agent WHERE id = ${id}`)
  }
  async findByName(name: string): Promise<ExternalAgent | undefined> {
    return this.#rows.oneOrThrow(await this.#db.one`SELECT * FROM a2a_agent WHERE name = ${name}`)
  }
  async findByUrl(url: string): Promise<ExternalAgent | undefined> {
    return this.#rows.oneOrThrow(await this.#db.one`SELECT * FROM a2a_agent WHERE url = ${url}`)
  }
  async count(state?: ExternalAgent['state']): Promise<number> {
    const row =
      state === undefined
        ? await this.#db.one`SELECT count(*) AS n FROM a2a_agent`
        : await this.#db.one`SELECT count(*) AS n FROM a2a_agent WHERE state = ${state}`
    return v.parse(Count, row).n
  }
  /** Adds it, or replaces the one with its id. */
  put(agent: ExternalAgent): Statement {
    const { id, name, url, source, state, fingerprint } = agent
    const [card, view, trusted] = [text(agent.card), text(agent.view), text(agent.trusted_view)]
    return this.#db.sql`INSERT INTO a2a_agent (id, name, url, source, state, card, view, trusted_view, fingerprint,
        discovered_by, discovered_at, checked_at, trusted_at)
      VALUES (${id}, ${name}, ${url}, ${source}, ${state}, ${card}, ${view}, ${trusted}, ${fingerprint},
        ${agent.discovered_by}, ${agent.discovered_at}, ${agent.checked_at}, ${agent.trusted_at})
      ON CONFLICT (id) DO UPDATE SET name = ${name}, url = ${url}, source = ${source}, state = ${state}, card = ${card},
        view = ${view}, trusted_view = ${trusted}, fingerprint = ${fingerprint}, checked_at = ${agent.checked_at},
        trusted_at = ${agent.trusted_at}`
  }
  /** Goes after `put` of a new one: with too many its name becomes NULL, which the column refuses. */
  requireRoom(id: string, max: number, maxPending: number): Statement {
    return {
      ...this.#db.sql`UPDATE a2a_agent SET name = CASE WHEN (SELECT count(*) FROM a2a_agent) <= ${max}
        AND (SELECT count(*) FROM a2a_agent WHERE state = 'pending') <= ${maxPending} THEN name END WHERE id = ${id}`,
      exclusive: 'a2a_agent',
    }
  }
  remove(id: string): Statement {
    return this.#db.sql`DELETE FROM a2a_agent WHERE id = ${id}`
  }
  commit(statements: readonly Statement[]) {
    return this.#db.batch(statements)
  }
}

/** SQL of what was sent. */
export class SentStore {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof SentRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'a2a_sent', key: ['id'], schema: SentRow, log })
  }

  async find(id: string): Promise<SentTask | undefined> {
    return this.#rows.oneOrThrow(await this.#db.one`SELECT * FROM a2a_sent WHERE id = ${id}`)
  }
  /** Those that the other side calls so, the newest message first: several agents may choose the same id. */
  async ofTask(taskId: string): Promise<readonly SentTask[]> {
    const rows = await this.#db.all`SELECT * FROM a2a_sent WHERE task_id = ${taskId}
      ORDER BY created_at DESC, id DESC LIMIT 100`
    return this.#rows.all(rows)
  }
  async list(limit: number, offset: number): Promise<readonly SentTask[]> {
    const rows = await this.#db.all`SELECT * FROM a2a_sent
      ORDER BY created_at DESC, id DESC LIMIT ${limit} OFFSET ${offset}`
    return this.#rows.all(rows)
  }
  async count(): Promise<number> {
    return v.parse(Count, await this.#db.one`SELECT count(*) AS n FROM a2a_sent`).n
  }
  /** Does nothing when the message is there. */
  insert(task: SentTask): Statement {
    return this.#db.sql`INSERT INTO a2a_sent (id, agent_id, agent_name, url, task_id, context_id, continues, state,
        message, result, error, asked_by, hops, attempts, created_at, updated_at, settled_at)
      VALUES (${task.id}, ${task.agent_id}, ${task.agent_name}, ${task.url}, ${task.task_id}, ${task.context_id},
        ${task.continues}, ${task.state}, ${task.message}, ${task.result}, ${task.error}, ${task.asked_by},
        ${task.hops}, ${task.attempts}, ${task.created_at}, ${task.updated_at}, ${task.settled_at})
      ON CONFLICT (id) DO NOTHING`
  }
  /** What has ended stays as it is. */
  update(task: SentTask): Statement {
    return this.#db.sql`UPDATE a2a_sent SET task_id = ${task.task_id}, context_id = ${task.context_id},
        state = ${task.state}, result = ${task.result}, error = ${task.error}, attempts = ${task.attempts},
        updated_at = ${task.updated_at}, settled_at = ${task.settled_at}
      WHERE id = ${task.id} AND settled_at IS NULL`
  }
  /** Those that ended before a time, and those that never did, sent before another. */
  deleteOld(settledBefore: number, sentBefore: number): Statement {
    return this.#db.sql`DELETE FROM a2a_sent WHERE settled_at < ${settledBefore}
      OR (settled_at IS NULL AND created_at < ${sentBefore})`
  }
  commit(statements: readonly Statement[]) {
    return this.#db.batch(statements)
  }
}
