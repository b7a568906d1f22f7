import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { OwnedCount } from '../cluster/contract.ts'
import type { Effect, NewTurn, Trace, TurnState } from './contract.ts'
import { CountRow, EffectRow, EndedRow, HeartbeatRow, OwnerCount, SendRow, TraceRow, TurnRow } from './schema.ts'

export class JournalStore {
  readonly #db: PluginDatabase
  readonly #effects: RowReader<typeof EffectRow>
  readonly #traces: RowReader<typeof TraceRow>
  readonly #ended: RowReader<typeof EndedRow>
  readonly #sends: RowReader<typeof SendRow>
  readonly #counts: RowReader<typeof CountRow>
  readonly #turns: RowReader<typeof TurnRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#effects = new RowReader({ table: 'journal_effect', key: ['key'], schema: EffectRow, log })
    this.#traces = new RowReader({ table: 'journal_trace', key: ['id'], schema: TraceRow, log })
    this.#ended = new RowReader({ table: 'journal_turn', key: ['id'], schema: EndedRow, log })
    this.#sends = new RowReader({ table: 'journal_effect', key: ['key'], schema: SendRow, log })
    this.#counts = new RowReader({ table: 'journal_turn or journal_effect', key: ['state'], schema: CountRow, log })
    this.#turns = new RowReader({ table: 'journal_turn', key: ['id'], schema: TurnRow, log })
  }

  insertTurn(turn: NewTurn, state: TurnState, owner: string, traces: string | null, at: string): Statement {
    const { onBehalf = [] } = turn
    return this.#db
      .sql`INSERT INTO journal_turn (id, agent_id, session_id, entry_point, state, on_crash, options, owner, created_at,
        updated_at, on_behalf, traces)
      VALUES (${turn.id}, ${turn.agentId}, ${turn.sessionId}, ${turn.entryPoint}, ${state}, ${turn.onCrash},
      ${turn.options}, ${owner}, ${turn.createdAt}, ${at},
      ${onBehalf.length === 0 ? null : JSON.stringify(onBehalf)}, ${traces})`
  }
  move(
    id: string,
    state: TurnState,
    error: string | null,
    failure: string | null,
    traces: string | null,
    at: string,
  ): Statement {
    return this.#db
      .sql`UPDATE journal_turn SET state = ${state}, error = ${error}, failure = ${failure}, traces = ${traces},
        updated_at = ${at}
      WHERE id = ${id} AND state IN ('queued', 'running', 'waiting')`
  }
  own(id: string, owner: string): Statement {
    return this.#db.sql`UPDATE journal_turn SET owner = ${owner} WHERE id = ${id}`
  }
  async findTurn(id: string): Promise<TurnRow | undefined> {
    return this.#turns.oneOrThrow(await this.#db.one`SELECT * FROM journal_turn WHERE id = ${id}`)
  }
  async turnsOf(agentId: string, limit: number): Promise<readonly TurnRow[]> {
    return this.#turns.all(
      await this.#db
        .all`SELECT * FROM journal_turn WHERE agent_id = ${agentId} ORDER BY created_at DESC, id DESC LIMIT ${limit}`,
    )
  }
  async failed(after: string, limit: number): Promise<readonly TurnRow[]> {
    return this.#turns.all(
      await this.#db
        .all`SELECT * FROM journal_turn WHERE state = 'failed' AND id > ${after} ORDER BY id LIMIT ${limit}`,
    )
  }
  /** Oldest first; of every session and agent that is not given. */
  async open(sessionId: string | null, agentId: string | null): Promise<readonly TurnRow[]> {
    return this.#turns.all(
      await this.#db.all`SELECT * FROM journal_turn WHERE state IN ('queued', 'running', 'waiting')
        AND session_id = coalesce(${sessionId}, session_id) AND agent_id = coalesce(${agentId}, agent_id)
        ORDER BY created_at, id`,
    )
  }
  /** All but those with these options. */
  adopt(sessionId: string, except: string, owner: string): readonly Statement[] {
    return [
      this.#db.sql`UPDATE journal_effect SET state = 'unknown' WHERE state = 'intent' AND turn_id IN (
        SELECT id FROM journal_turn WHERE session_id = ${sessionId} AND options <> ${except}
        AND state IN ('queued', 'running', 'waiting'))`,
      this.#db.sql`UPDATE journal_turn SET owner = ${owner} WHERE session_id = ${sessionId} AND options <> ${except}
        AND state IN ('queued', 'running', 'waiting')`,
    ]
  }
  /** Open turns of other owners, oldest first. */
  async foreign(owner: string): Promise<readonly TurnRow[]> {
    return this.#turns.all(
      await this.#db.all`SELECT * FROM journal_turn
      WHERE state IN ('queued', 'running', 'waiting') AND owner <> ${owner} ORDER BY created_at, id`,
    )
  }
  /** Whose turns are open, each once. */
  async openOwners(): Promise<readonly string[]> {
    const rows = await this.#db.all<{ owner: string }>`SELECT DISTINCT owner FROM journal_turn
      WHERE state IN ('queued', 'running', 'waiting')`
    return rows.map(({ owner }) => owner)
  }
  /** How many open turns each owner has; one that shares a file with others is known by its home. */
  async countOpen(): Promise<readonly OwnedCount[]> {
    const rows = v.parse(
      v.array(OwnerCount),
      await this.#db.all`SELECT owner, count(*) AS count FROM journal_turn
        WHERE state IN ('queued', 'running', 'waiting') GROUP BY owner`,
    )
    return rows.map(({ owner, count }) => ({ owner: owner.replace(/\/.*/, ''), what: 'turns', count }))
  }
  async heartbeats(): Promise<readonly v.InferOutput<typeof HeartbeatRow>[]> {
    return v.parse(v.array(HeartbeatRow), await this.#db.all`SELECT id, beats FROM journal_owner`)
  }
  async beat(id: string): Promise<void> {
    await this.#db.run`INSERT INTO journal_owner (id, beats) VALUES (${id}, 0)
      ON CONFLICT (id) DO UPDATE SET beats = journal_owner.beats + 1`
  }
  /** Unless it has beaten more often than this. */
  endOwner(id: string, unlessBeyond = Number.MAX_SAFE_INTEGER): Statement {
    return this.#db.sql`DELETE FROM journal_owner WHERE id = ${id} AND beats <= ${unlessBeyond}`
  }
  /** Takes an open turn over, unless another process did before or its owner has beaten more often than this. */
  claim(turn: Pick<TurnRow, 'id' | 'owner'>, owner: string, unlessBeyond?: number): Statement {
    const beats = unlessBeyond ?? Number.MAX_SAFE_INTEGER
    return this.#db.sql`UPDATE journal_turn SET owner = ${owner} WHERE id = ${turn.id} AND owner = ${turn.owner}
      AND state IN ('queued', 'running', 'waiting')
      AND NOT EXISTS (SELECT 1 FROM journal_owner WHERE id = ${turn.owner} AND beats > ${beats})`
  }
  async commit(statements: readonly Statement[]): Promise<void> {
    if (statements.length > 0) await this.#db.batch(statements)
  }

  insertEffect(
    effect: Pick<Effect, 'key' | 'turnId' | 'kind' | 'name' | 'input' | 'state'> & { readonly result?: string },
    createdAt: string,
    settledAt: string | null,
  ): Statement {
    return this.#db
      .sql`INSERT INTO journal_effect (key, turn_id, kind, name, state, input, result, created_at, settled_at)
      VALUES (${effect.key}, ${effect.turnId}, ${effect.kind}, ${effect.name}, ${effect.state}, ${effect.input},
      ${effect.result ?? null}, ${createdAt}, ${settledAt}) ON CONFLICT (key) DO NOTHING`
  }
  settle(key: string, state: 'done' | 'failed' | 'unknown', result: string, at: string): Statement {
    return this.#db.sql`UPDATE journal_effect SET state = ${state}, result = ${result}, settled_at = ${at}
      WHERE key = ${key} AND state IN ('intent', 'unknown')`
  }
  /** Changes nothing where another process took the turn over. */
  doubt(turnId: string, owner: string): Statement {
    return this.#db.sql`UPDATE journal_effect SET state = 'unknown' WHERE turn_id = ${turnId} AND state = 'intent'
      AND EXISTS (SELECT 1 FROM journal_turn t WHERE t.id = ${turnId} AND t.owner = ${owner})`
  }
  async effects(turnId: string): Promise<readonly EffectRow[]> {
    return this.#effects.allOrThrow(
      await this.#db.all`SELECT * FROM journal_effect WHERE turn_id = ${turnId} ORDER BY created_at, key`,
    )
  }

  insertTrace(trace: Trace): Statement {
    const { tokens } = trace
    return this.#db
      .sql`INSERT INTO journal_trace (agent_id, id, session_id, turn_id, kind, name, call_id, iteration, started_at,
        duration_ms, first_ms,
        failed, input_tokens, output_tokens, input, output)
      VALUES (${trace.agentId}, ${trace.id}, ${trace.sessionId}, ${trace.turnId}, ${trace.kind}, ${trace.name},
      ${trace.callId ?? null}, ${trace.iteration},
        ${trace.startedAt}, ${trace.durationMs}, ${trace.firstMs ?? null}, ${trace.failed ? 1 : 0},
        ${tokens?.input ?? null}, ${tokens?.output ?? null},
        ${trace.input}, ${trace.output})`
  }
  async traces(agentId: string, limit: number): Promise<readonly TraceRow[]> {
    return this.#traces.all(
      await this.#db.all`SELECT * FROM journal_trace WHERE agent_id = ${agentId} ORDER BY id DESC LIMIT ${limit}`,
    )
  }
  /** Turns of an agent that have traces, newest first. */
  async endedOf(agentId: string, limit: number): Promise<readonly EndedRow[]> {
    return this.#ended.all(
      await this.#db.all`SELECT id, session_id, traces FROM journal_turn
      WHERE agent_id = ${agentId} AND traces IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT ${limit}`,
    )
  }

  async turnCounts(agentId: string): Promise<readonly CountRow[]> {
    return this.#counts.all(
      await this.#db.all`SELECT state, count(*) AS n FROM journal_turn WHERE agent_id = ${agentId} GROUP BY state`,
    )
  }
  async toolCounts(agentId: string): Promise<readonly CountRow[]> {
    return this.#counts.all(
      await this.#db
        .all`SELECT e.state AS state, count(*) AS n FROM journal_turn t JOIN journal_effect e ON e.turn_id = t.id
      WHERE t.agent_id = ${agentId} AND e.kind = 'tool' GROUP BY e.state`,
    )
  }
  async sends(agentId: string, limit: number): Promise<readonly SendRow[]> {
    return this.#sends.all(
      await this.#db.all`SELECT e.* FROM journal_effect e JOIN journal_turn t ON t.id = e.turn_id
      WHERE e.kind = 'send' AND t.agent_id = ${agentId} ORDER BY e.created_at DESC, e.key DESC LIMIT ${limit}`,
    )
  }
  /** Turns that ended before this time, at most `limit`, with all that belongs to them. How many there were. */
  async dropEnded(before: string, limit: number): Promise<number> {
    const rows = await this.#db.all<{ id: string }>`SELECT id FROM journal_turn
      WHERE updated_at < ${before} AND state NOT IN ('queued', 'running', 'waiting') LIMIT ${limit}`
    if (rows.length > 0) {
      await this.#db.batch(
        rows.flatMap(({ id }) => [
          this.#db.sql`DELETE FROM journal_effect WHERE turn_id = ${id}`,
          this.#db.sql`DELETE FROM journal_turn WHERE id = ${id}`,
        ]),
      )
    }
    return rows.length
  }
  /** Keeps the newest of an agent. */
  async trimTraces(agentId: string, keep: number): Promise<void> {
    await this.#db.run`DELETE FROM journal_trace WHERE agent_id = ${agentId} AND id < (
      SELECT t.id FROM journal_trace t WHERE t.agent_id = ${agentId} ORDER BY t.id DESC LIMIT 1 OFFSET ${keep - 1})`
  }
  async dropTraces(before: string): Promise<void> {
    await this.#db.run`DELETE FROM journal_trace WHERE started_at < ${before}`
  }
  async forget(agentId: string): Promise<void> {
    await this.#db.batch([
      this.#db.sql`DELETE FROM journal_trace WHERE agent_id = ${agentId}`,
      this.#db.sql`UPDATE journal_turn SET traces = NULL WHERE agent_id = ${agentId} AND traces IS NOT NULL`,
    ])
  }
}
