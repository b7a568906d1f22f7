import * as v from 'valibot'
import { readOwnJson, RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { Workflow } from '../definition.ts'
import { Count, StoredItem, StoredRevision } from './schema.ts'

export class DefinitionStore {
  readonly #db: PluginDatabase
  readonly #items: RowReader<typeof StoredItem>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#items = new RowReader({ table: 'workflows_definition', key: ['id'], schema: StoredItem, log })
  }

  async find(id: string): Promise<Workflow | undefined> {
    return toWorkflow(
      await this.#db.one`SELECT r.workflow FROM workflows_definition d
        JOIN workflows_revision r ON r.workflow_id = d.id AND r.revision = d.revision WHERE d.id = ${id}`,
    )
  }
  /** Two at most, the oldest first. */
  async findByName(name: string): Promise<readonly string[]> {
    const rows = await this.#db.all`SELECT id, name, description, step_count, revision, file, run_by, created_at,
        updated_at FROM workflows_definition WHERE name = ${name} ORDER BY created_at, id LIMIT 2`
    return this.#items.allOrThrow(rows).map(({ id }) => id)
  }
  async findRevision(id: string, revision: number): Promise<Workflow | undefined> {
    return toWorkflow(
      await this.#db.one`SELECT workflow FROM workflows_revision WHERE workflow_id = ${id} AND revision = ${revision}`,
    )
  }
  /** Oldest first. */
  async list(): Promise<readonly StoredItem[]> {
    const rows = await this.#db.all`SELECT id, name, description, step_count, revision, file, run_by, created_at,
        updated_at FROM workflows_definition ORDER BY created_at, id`
    return this.#items.all(rows)
  }
  async count(): Promise<number> {
    return v.parse(Count, await this.#db.one`SELECT COUNT(*) AS n FROM workflows_definition`).n
  }

  /** Fails when this revision exists: somebody else changed the workflow. */
  write(workflow: Workflow, keptRevisions: number): readonly Statement[] {
    const { id, revision, name, description, file = null, createdAt, updatedAt } = workflow
    return [
      this.#db.sql`DELETE FROM workflows_revision
        WHERE workflow_id = ${id} AND revision <= ${revision - keptRevisions}`,
      this.#db.sql`INSERT INTO workflows_revision (workflow_id, revision, workflow, created_at)
        VALUES (${id}, ${revision}, ${JSON.stringify(workflow)}, ${updatedAt})`,
      this.#db.sql`INSERT INTO workflows_definition
          (id, name, description, step_count, revision, file, run_by, created_at, updated_at)
        VALUES (${id}, ${name}, ${description}, ${workflow.steps.length}, ${revision}, ${file},
          ${JSON.stringify(workflow.runBy)}, ${createdAt}, ${updatedAt})
        ON CONFLICT (id) DO UPDATE SET name = excluded.name, description = excluded.description,
          step_count = excluded.step_count, revision = excluded.revision, file = excluded.file,
          run_by = excluded.run_by, updated_at = excluded.updated_at`,
    ]
  }
  /** Goes after `write` of a new workflow: with too many its name becomes NULL, which the column refuses. */
  requireRoom(id: string, max: number): Statement {
    return {
      ...this.#db.sql`UPDATE workflows_definition
        SET name = CASE WHEN (SELECT COUNT(*) FROM workflows_definition) <= ${max} THEN name END WHERE id = ${id}`,
      exclusive: 'workflows_definition',
    }
  }
  /** A run that goes on has a copy. */
  remove(id: string): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM workflows_definition WHERE id = ${id}`,
      this.#db.sql`DELETE FROM workflows_revision WHERE workflow_id = ${id}`,
    ]
  }
  async commit(statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}

/** Written by this class, so its shape is known. Earlier versions did not write `runBy`. */
function toWorkflow(row: unknown): Workflow | undefined {
  const stored = v.parse(v.optional(StoredRevision), row)
  if (!stored) return undefined
  const { runBy = [], ...workflow } = readOwnJson(stored.workflow) as Omit<Workflow, 'runBy'> & Partial<Workflow>
  return { ...workflow, runBy }
}
