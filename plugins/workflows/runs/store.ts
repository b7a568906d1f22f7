import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { RunState } from '../definition.ts'
import type { Position } from './position.ts'
import { AttemptRow, Count, RunListRow, RunRow, VariableRow } from './schema.ts'

export type NewRun = Pick<
  RunRow,
  | 'id'
  | 'workflow_id'
  | 'workflow_name'
  | 'input'
  | 'cause'
  | 'depth'
  | 'hops'
  | 'parent_run_id'
  | 'parent_key'
  | 'rerun_of'
> & {
  readonly definition: string
  readonly position: Position
  readonly stepsCompleted: number
  /** JSON. */
  readonly asker: string | null
}

/** What a worker changes of a run. */
export interface RunChange {
  readonly position: Position
  readonly stepsCompleted: number
  readonly workedMs: number
  readonly state?: RunState
  readonly output?: string
  readonly error?: string
}

/** Of one workflow, or of all; in one state, or in any. */
export interface RunPage {
  readonly workflowId?: string | undefined
  readonly state?: RunState | undefined
  readonly limit: number
  readonly offset: number
}

export class RunStore {
  readonly #db: PluginDatabase
  readonly #listed: RowReader<typeof RunListRow>
  readonly #runs: RowReader<typeof RunRow>
  readonly #attempts: RowReader<typeof AttemptRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#listed = new RowReader({ table: 'workflows_run', key: ['id'], schema: RunListRow, log })
    this.#runs = new RowReader({ table: 'workflows_run', key: ['id'], schema: RunRow, log })
    this.#attempts = new RowReader({ table: 'workflows_attempt', key: ['key'], schema: AttemptRow, log })
  }

  /**
   * The second run with an id is not added. Makes its batch fail when `maxActive` runs have not ended: the id would be
   * NULL.
   */
  insert(run: NewRun, now: number, maxActive: number): Statement {
    const { position, stepsCompleted } = run
    return {
      ...this.#db.sql`INSERT INTO workflows_run
        (id, workflow_id, workflow_name, definition, input, cause, state, step_index, iteration, step_input,
         steps_completed, worked_ms, depth, hops, parent_run_id, parent_key, rerun_of, asker, epoch, revision,
         created_at)
      VALUES (CASE WHEN (SELECT COUNT(*) FROM workflows_run WHERE state IN ('Pending', 'Running', 'Paused'))
          < ${maxActive} THEN ${run.id} END, ${run.workflow_id}, ${run.workflow_name}, ${run.definition}, ${run.input}, ${run.cause},
        'Pending', ${position.index}, ${position.iteration}, ${position.input}, ${stepsCompleted}, 0, ${run.depth}, ${run.hops},
        ${run.parent_run_id}, ${run.parent_key}, ${run.rerun_of}, ${run.asker}, 0, 1, ${now})
      ON CONFLICT (id) DO NOTHING`,
      exclusive: 'workflows_run',
    }
  }
  async find(id: string): Promise<RunRow | undefined> {
    return this.#runs.oneOrThrow(await this.#db.one`SELECT * FROM workflows_run WHERE id = ${id}`)
  }
  /** Newest first. */
  async list({ workflowId, state, limit, offset }: RunPage): Promise<readonly RunListRow[]> {
    const wanted = state ?? null
    // Two queries, so that each has an index.
    const rows =
      workflowId === undefined
        ? await this.#db.all`SELECT * FROM workflows_run WHERE state = COALESCE(${wanted}, state)
            ORDER BY created_at DESC, id DESC LIMIT ${limit} OFFSET ${offset}`
        : await this.#db.all`SELECT * FROM workflows_run
            WHERE workflow_id = ${workflowId} AND state = COALESCE(${wanted}, state)
            ORDER BY created_at DESC, id DESC LIMIT ${limit} OFFSET ${offset}`
    return this.#listed.all(rows)
  }
  async active(): Promise<readonly RunListRow[]> {
    return this.#listed.all(
      await this.#db.all`SELECT * FROM workflows_run WHERE state IN ('Pending', 'Running', 'Paused')`,
    )
  }
  async countActive(): Promise<number> {
    const row = await this.#db.one`SELECT COUNT(*) AS count FROM workflows_run
      WHERE state IN ('Pending', 'Running', 'Paused')`
    return v.parse(Count, row).count
  }
  async children(runId: string): Promise<readonly RunListRow[]> {
    return this.#listed.all(
      await this.#db.all`SELECT * FROM workflows_run
        WHERE parent_run_id = ${runId} AND state IN ('Pending', 'Running', 'Paused')`,
    )
  }

  /** Takes the run: whoever had it before writes no more. */
  async take(id: string, now: number): Promise<RunRow | undefined> {
    await this.#db.run`UPDATE workflows_run SET epoch = epoch + 1, revision = revision + 1,
        state = CASE WHEN state = 'Pending' THEN 'Running' ELSE state END, started_at = COALESCE(started_at, ${now})
      WHERE id = ${id} AND state IN ('Pending', 'Running', 'Paused')`
    return this.find(id)
  }
  /** Makes its batch fail when the run has ended, or another worker has taken it: the epoch would be NULL. */
  advance(run: Pick<RunRow, 'id' | 'epoch'>, change: RunChange, now: number): Statement {
    const { position, stepsCompleted, workedMs, state, output = null, error = null } = change
    const hasEnded = state !== undefined
    return this.#db.sql`UPDATE workflows_run SET
        epoch = CASE WHEN epoch = ${run.epoch} AND state IN ('Running', 'Paused') THEN epoch END,
        revision = revision + 1, step_index = ${position.index}, iteration = ${position.iteration},
        step_input = ${position.input}, steps_completed = ${stepsCompleted}, worked_ms = ${workedMs},
        state = COALESCE(${state ?? null}, state), output = ${output}, error = ${error},
        completed_at = ${hasEnded ? now : null}
      WHERE id = ${run.id}`
  }
  /** Makes its batch fail unless the run is in one of these states: the state would be NULL. */
  move(id: string, from: readonly RunState[], to: RunState, now: number, error?: string): Statement {
    const [first = to, second = first, third = second] = from
    const completedAt = to === 'Cancelled' || to === 'Failed' ? now : null
    return this.#db.sql`UPDATE workflows_run SET
        state = CASE WHEN state IN (${first}, ${second}, ${third}) THEN ${to} END,
        revision = revision + 1, error = ${error ?? null}, completed_at = ${completedAt}
      WHERE id = ${id}`
  }
  /** Ends a run whose job is dead; changes nothing when it has ended. */
  fail(id: string, error: string, now: number): Statement {
    return this.#db.sql`UPDATE workflows_run
      SET state = 'Failed', error = ${error}, completed_at = ${now}, revision = revision + 1, epoch = epoch + 1
      WHERE id = ${id} AND state IN ('Pending', 'Running', 'Paused')`
  }
  /** In the order in which they were made, those of one step together. */
  async attempts(runId: string, afterRevision = -1): Promise<readonly AttemptRow[]> {
    return this.#attempts.allOrThrow(
      await this.#db.all`SELECT * FROM workflows_attempt WHERE run_id = ${runId} AND revision > ${afterRevision}
        ORDER BY step_index, iteration, attempt`,
    )
  }
  async findAttempt(key: string): Promise<AttemptRow | undefined> {
    return this.#attempts.oneOrThrow(await this.#db.one`SELECT * FROM workflows_attempt WHERE key = ${key}`)
  }
  async waitingFor(what: string): Promise<readonly AttemptRow[]> {
    return this.#attempts.all(
      await this.#db.all`SELECT * FROM workflows_attempt WHERE waits_for = ${what} AND ended_at IS NULL`,
    )
  }
  /** Its revision is that which the run has after this batch: to be committed behind the change of the run. */
  saveAttempt(row: AttemptRow): Statement {
    return this.#db.sql`INSERT INTO workflows_attempt
        (run_id, step_index, iteration, attempt, key, step, type, state, input, prompt, output, error, agent_id,
         agent_name, wait_state, wake_at, waits_for, woken, input_tokens, output_tokens, cost_usd, started_at, ended_at,
         revision)
      SELECT ${row.run_id}, ${row.step_index}, ${row.iteration}, ${row.attempt}, ${row.key}, ${row.step}, ${row.type},
        ${row.state}, ${row.input}, ${row.prompt}, ${row.output}, ${row.error}, ${row.agent_id}, ${row.agent_name},
        ${row.wait_state}, ${row.wake_at}, ${row.waits_for}, 0, ${row.input_tokens}, ${row.output_tokens},
        ${row.cost_usd}, ${row.started_at}, ${row.ended_at}, revision FROM workflows_run WHERE id = ${row.run_id}
      ON CONFLICT (run_id, step_index, iteration, attempt) DO UPDATE SET
        state = excluded.state, prompt = excluded.prompt, output = excluded.output, error = excluded.error,
        agent_id = excluded.agent_id, agent_name = excluded.agent_name, wait_state = excluded.wait_state,
        wake_at = excluded.wake_at, waits_for = excluded.waits_for, input_tokens = excluded.input_tokens,
        output_tokens = excluded.output_tokens, cost_usd = excluded.cost_usd, ended_at = excluded.ended_at,
        revision = excluded.revision`
  }
  /** The run has ended: what still ran or waited. To be committed behind the change of the run. */
  cancelAttempts(runId: string, now: number): Statement {
    return this.#db.sql`UPDATE workflows_attempt SET state = 'cancelled', ended_at = ${now}, waits_for = NULL,
        wake_at = NULL, revision = (SELECT r.revision FROM workflows_run r WHERE r.id = ${runId})
      WHERE run_id = ${runId} AND ended_at IS NULL`
  }
  /** What the attempt waits for has happened, also when it is only about to wait. */
  async wake(key: string, waitState?: string): Promise<void> {
    await this.#db.run`UPDATE workflows_attempt SET woken = 1, wait_state = COALESCE(${waitState ?? null}, wait_state)
      WHERE key = ${key} AND ended_at IS NULL`
  }
  clearWoken(key: string): Statement {
    return this.#db.sql`UPDATE workflows_attempt SET woken = 0 WHERE key = ${key}`
  }

  async variables(runId: string): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#db.all`SELECT name, value FROM workflows_variable WHERE run_id = ${runId}`
    return new Map(v.parse(v.array(VariableRow), rows).map(({ name, value }) => [name, value]))
  }
  setVariable(runId: string, name: string, value: string): Statement {
    return this.#db.sql`INSERT INTO workflows_variable (run_id, name, value) VALUES (${runId}, ${name}, ${value})
      ON CONFLICT (run_id, name) DO UPDATE SET value = excluded.value`
  }

  /** The oldest of the ended runs beyond the newest `keep`. */
  async surplus(keep: number, limit: number): Promise<readonly string[]> {
    const rows = await this.#db.all`SELECT id FROM workflows_run
      WHERE state IN ('Completed', 'Failed', 'Cancelled') ORDER BY created_at DESC, id DESC
      LIMIT ${limit} OFFSET ${keep}`
    return v.parse(v.array(v.object({ id: v.string() })), rows).map(({ id }) => id)
  }
  remove(id: string): readonly Statement[] {
    return [
      this.#db.sql`DELETE FROM workflows_variable WHERE run_id = ${id}`,
      this.#db.sql`DELETE FROM workflows_attempt WHERE run_id = ${id}`,
      this.#db.sql`DELETE FROM workflows_run WHERE id = ${id}`,
    ]
  }
  commit(statements: readonly Statement[]): Promise<unknown> {
    return this.#db.batch(statements)
  }
}
