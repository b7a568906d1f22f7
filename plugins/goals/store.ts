import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Changes, Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { Goal, GoalStatus } from './contract.ts'
import { Count, GoalRow } from './row.ts'
import type { StoredGoal } from './row.ts'

export interface GoalFilter {
  readonly status?: GoalStatus | undefined
  readonly agentId?: string | undefined
  /** Only those without a parent. */
  readonly roots?: boolean | undefined
}

/** Whether an agent has a goal: with none, nothing is loaded when it is removed. */
export async function hasGoals(db: PluginDatabase, agentId: string): Promise<boolean> {
  return (await db.one`SELECT 1 AS found FROM goals_goal WHERE agent_id = ${agentId} LIMIT 1`) !== undefined
}
/** For the batch that removes an agent. */
export function withoutAgent(db: PluginDatabase, agentId: string, now: string): Statement {
  return db.sql`UPDATE goals_goal SET agent_id = NULL, version = version + 1, updated_at = ${now}
    WHERE agent_id = ${agentId}`
}

export class GoalStore {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof GoalRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'goals_goal', key: ['id'], schema: GoalRow, log })
  }

  /**
   * With too many goals, without its parent or too deep below others the title becomes NULL, which the column refuses:
   * the batch fails.
   */
  insert(goal: Goal, maxGoals: number, maxDepth: number): Statement {
    const parent = goal.parentId ?? null
    return {
      ...this.#db.sql`INSERT INTO goals_goal
        (id, title, description, status, progress, agent_id, parent_id, due_at, created_by, version, created_at,
         updated_at)
      VALUES (${goal.id}, CASE WHEN (SELECT COUNT(*) FROM goals_goal) < ${maxGoals}
          AND (CAST(${parent} AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM goals_goal WHERE id = ${parent}))
          AND (
            WITH RECURSIVE goals_above (id, parent_id) AS (
              SELECT id, parent_id FROM goals_goal WHERE id = ${parent}
              UNION SELECT next.id, next.parent_id FROM goals_goal AS next JOIN goals_above ON next.id = goals_above.parent_id)
            SELECT COUNT(*) FROM goals_above) < ${maxDepth}
          THEN CAST(${goal.title} AS TEXT) END,
        ${goal.description}, ${goal.status}, ${goal.progress}, ${goal.agentId ?? null}, ${parent},
        ${goal.dueAt ?? null}, ${goal.createdBy ?? null}, 1, ${goal.createdAt}, ${goal.updatedAt})`,
      exclusive: 'goals_goal',
    }
  }
  /**
   * Makes its batch fail when the goal has changed since it was read, its parent is gone, or is below the goal: another
   * daemon may have moved that one meanwhile. `maxDepth`: for a goal that moves, which may not come deeper.
   */
  update(goal: StoredGoal, maxDepth: number | undefined): Statement {
    const parent = goal.parentId ?? null
    const statement = this.#db.sql`UPDATE goals_goal SET
        version = CASE WHEN version = ${goal.version} THEN version + 1 END,
        title = CASE WHEN (CAST(${parent} AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM goals_goal WHERE id = ${parent}))
          AND NOT EXISTS (
            WITH RECURSIVE goals_above (id, parent_id) AS (
              SELECT id, parent_id FROM goals_goal WHERE id = ${parent}
              UNION SELECT next.id, next.parent_id FROM goals_goal AS next JOIN goals_above ON next.id = goals_above.parent_id)
            SELECT 1 FROM goals_above WHERE id = ${goal.id})
          AND (CAST(${maxDepth ?? null} AS INTEGER) IS NULL OR (
            WITH RECURSIVE goals_above (id, parent_id) AS (
              SELECT id, parent_id FROM goals_goal WHERE id = ${parent}
              UNION SELECT next.id, next.parent_id FROM goals_goal AS next JOIN goals_above ON next.id = goals_above.parent_id)
            SELECT COUNT(*) FROM goals_above) + (
            WITH RECURSIVE goals_below (id, level) AS (
              SELECT id, 1 FROM goals_goal WHERE id = ${goal.id}
              UNION SELECT next.id, level + 1 FROM goals_goal AS next JOIN goals_below ON next.parent_id = goals_below.id)
            SELECT MAX(level) FROM goals_below) <= ${maxDepth ?? null})
          THEN CAST(${goal.title} AS TEXT) END,
        description = ${goal.description}, status = ${goal.status}, progress = ${goal.progress},
        agent_id = ${goal.agentId ?? null}, parent_id = ${parent}, due_at = ${goal.dueAt ?? null},
        updated_at = ${goal.updatedAt}
      WHERE id = ${goal.id}`
    // Or two daemons could put two goals below each other at the same moment.
    return parent === null ? statement : { ...statement, exclusive: 'goals_goal' }
  }
  /** With everything below it. */
  remove(id: string): Statement {
    return this.#db.sql`DELETE FROM goals_goal WHERE id IN (
      WITH RECURSIVE goals_below (id) AS (
        SELECT id FROM goals_goal WHERE id = ${id}
        UNION SELECT next.id FROM goals_goal AS next JOIN goals_below ON next.parent_id = goals_below.id)
      SELECT id FROM goals_below)`
  }

  async find(id: string): Promise<StoredGoal | undefined> {
    return this.#rows.oneOrThrow(await this.#db.one`SELECT * FROM goals_goal WHERE id = ${id}`)
  }
  /** Oldest first. */
  async list(
    { status, agentId, roots = false }: GoalFilter,
    limit: number,
    offset: number,
  ): Promise<readonly StoredGoal[]> {
    const state = status ?? null
    const agent = agentId ?? null
    return this.#rows.all(
      await this.#db.all`SELECT * FROM goals_goal
        WHERE (CAST(${state} AS TEXT) IS NULL OR status = ${state})
          AND (CAST(${agent} AS TEXT) IS NULL OR agent_id = ${agent})
          AND (${Number(roots)} = 0 OR parent_id IS NULL)
        ORDER BY created_at, id LIMIT ${limit} OFFSET ${offset}`,
    )
  }
  async count({ status, agentId, roots = false }: GoalFilter): Promise<number> {
    const state = status ?? null
    const agent = agentId ?? null
    const row = await this.#db.one`SELECT COUNT(*) AS count FROM goals_goal
      WHERE (CAST(${state} AS TEXT) IS NULL OR status = ${state})
        AND (CAST(${agent} AS TEXT) IS NULL OR agent_id = ${agent})
        AND (${Number(roots)} = 0 OR parent_id IS NULL)`
    return v.parse(Count, row).count
  }
  async children(id: string): Promise<readonly StoredGoal[]> {
    return this.#rows.all(await this.#db.all`SELECT * FROM goals_goal WHERE parent_id = ${id} ORDER BY created_at, id`)
  }
  /** The goal and everything below it. */
  async subtree(id: string): Promise<readonly StoredGoal[]> {
    return this.#rows.all(
      await this.#db.all`WITH RECURSIVE goals_below (id) AS (
          SELECT id FROM goals_goal WHERE id = ${id}
          UNION SELECT next.id FROM goals_goal AS next JOIN goals_below ON next.parent_id = goals_below.id)
        SELECT goals_goal.* FROM goals_goal JOIN goals_below ON goals_goal.id = goals_below.id
        ORDER BY goals_goal.created_at, goals_goal.id`,
    )
  }
  /** The ids of the goal and of those above it. */
  async above(id: string): Promise<readonly string[]> {
    const rows = await this.#db.all`WITH RECURSIVE goals_above (id, parent_id) AS (
        SELECT id, parent_id FROM goals_goal WHERE id = ${id}
        UNION SELECT next.id, next.parent_id FROM goals_goal AS next JOIN goals_above ON next.id = goals_above.parent_id)
      SELECT id FROM goals_above`
    return v.parse(v.array(v.object({ id: v.string() })), rows).map((row) => row.id)
  }
  /** Those of an agent, those it made, and those that are for nobody; oldest first. */
  async ofAgent(agentId: string, status: GoalStatus | undefined, limit: number): Promise<readonly StoredGoal[]> {
    const state = status ?? null
    return this.#rows.all(
      await this.#db.all`SELECT * FROM goals_goal
        WHERE (agent_id = ${agentId} OR agent_id IS NULL OR created_by = ${agentId})
          AND (CAST(${state} AS TEXT) IS NULL OR status = ${state})
        ORDER BY created_at, id LIMIT ${limit}`,
    )
  }
  commit(statements: readonly Statement[]): Promise<readonly Changes[]> {
    return this.#db.batch(statements)
  }
}
