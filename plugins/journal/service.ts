import type { Statement } from 'svc/sdk'
import type { Counts, Effect, Journal, NewTurn, Send, Trace, Turn, TurnState } from './contract.ts'
import type { EffectRow, TraceRow, TurnRow } from './schema.ts'
import type { Retention } from './retention.ts'
import type { JournalStore } from './store.ts'
import type { Owners } from './turn-owners.ts'

/** The journal of one process. `owners` marks whose turns are whose. */
export class JournalService implements Journal {
  readonly #store: JournalStore
  readonly #retention: Pick<Retention, 'wrote'> | undefined
  readonly #owners: Owners
  readonly #now: () => string
  constructor(store: JournalStore, owners: Owners, now: () => string, retention?: Pick<Retention, 'wrote'>) {
    this.#store = store
    this.#retention = retention
    this.#owners = owners
    this.#now = now
  }

  accept(turn: NewTurn, state: 'queued' | 'running' = 'queued', owner = this.#owners.id): Statement {
    return this.#store.insertTurn(turn, state, owner, null, turn.createdAt)
  }
  done(turn: NewTurn, effect: Parameters<Journal['done']>[1], traces: readonly Trace[]): readonly Statement[] {
    const at = this.#now()
    return [
      this.#store.insertTurn(turn, 'done', this.#owners.id, toText(traces), at),
      this.#store.insertEffect({ ...effect, turnId: turn.id }, turn.createdAt, at),
    ]
  }
  move(
    turnId: string,
    state: TurnState,
    { error, failure }: Parameters<Journal['move']>[2] = {},
    traces: readonly Trace[] = [],
  ): Statement {
    return this.#store.move(
      turnId,
      state,
      error ?? null,
      failure === undefined ? null : JSON.stringify(failure),
      toText(traces),
      this.#now(),
    )
  }
  release(turnId: string): Statement {
    return this.#store.own(turnId, '')
  }
  intend(effect: Pick<Effect, 'key' | 'turnId' | 'kind' | 'name' | 'input'>): Statement {
    return this.#store.insertEffect({ ...effect, state: 'intent' }, this.#now(), null)
  }
  settle(key: string, state: 'done' | 'failed' | 'unknown', result: string): Statement {
    return this.#store.settle(key, state, result, this.#now())
  }

  async find(turnId: string): Promise<Turn | undefined> {
    const row = await this.#store.findTurn(turnId)
    return row && toTurn(row)
  }
  async turns(agentId: string, limit: number): Promise<readonly Turn[]> {
    return (await this.#store.turnsOf(agentId, limit)).map(toTurn)
  }
  async open({ sessionId, agentId }: Parameters<Journal['open']>[0] = {}): Promise<readonly Turn[]> {
    return (await this.#store.open(sessionId ?? null, agentId ?? null)).map(toTurn)
  }
  async failed(after: string, limit: number): Promise<readonly Turn[]> {
    return (await this.#store.failed(after, limit)).map(toTurn)
  }
  async effects(turnId: string): Promise<readonly Effect[]> {
    return (await this.#store.effects(turnId)).map(toEffect)
  }

  trace(traces: readonly Trace[]): readonly Statement[] {
    const [first] = traces
    if (first) this.#retention?.wrote(first.agentId, traces.length)
    return traces.map((trace) => this.#store.insertTrace(trace))
  }
  async traces(agentId: string, limit: number): Promise<readonly Trace[]> {
    const [steps, ends] = await Promise.all([this.#store.traces(agentId, limit), this.#store.endedOf(agentId, limit)])
    const all = [
      ...steps.map(toTrace),
      ...ends.flatMap((turn) =>
        turn.traces.map((trace) => ({ ...trace, agentId, sessionId: turn.session_id, turnId: turn.id })),
      ),
    ]
    return all.sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit)
  }

  async counts(agentId: string): Promise<Counts> {
    const [turns, effects] = await Promise.all([this.#store.turnCounts(agentId), this.#store.toolCounts(agentId)])
    const tools = (wanted?: Effect['state']): number =>
      effects.reduce((sum, { state, n }) => (wanted === undefined || state === wanted ? sum + n : sum), 0)
    return {
      turns: Object.fromEntries(turns.map(({ state, n }) => [state, n])),
      toolCalls: tools(),
      failedToolCalls: tools('failed'),
    }
  }
  async sends(agentId: string, limit: number): Promise<readonly Send[]> {
    return (await this.#store.sends(agentId, limit)).map((row) => ({
      ...toEffect(row),
      createdAt: row.created_at,
      settledAt: row.settled_at ?? undefined,
    }))
  }

  // Decision: what a living process works on is left to it. On a file that two daemons share, one that stands still for a
  // whole lease and wakes up goes on with turns that another took over meanwhile: the lease is therefore longer than any
  // pause of a healthy process. On PostgreSQL its batches fail.
  async orphans(only?: string): Promise<readonly Turn[]> {
    const { id, abandoned } = this.#owners
    const claimed: TurnRow[] = []
    const ended = new Map<string, Statement>()
    const statements: Statement[] = []
    for (const row of await this.#store.foreign(id)) {
      const verdict = only === undefined || row.options === only ? abandoned(row.owner) : undefined
      if (!verdict) continue
      const written = (changes: number): void => void (changes > 0 && claimed.push(row))
      statements.push(
        ...(verdict.unlessAlive ?? []),
        { ...this.#store.claim(row, id, verdict.unlessBeyond), written },
        this.#store.doubt(row.id, id),
      )
      ended.set(row.owner, this.#store.endOwner(row.owner, verdict.unlessBeyond))
    }
    await this.#store.commit([...statements, ...ended.values()])
    return claimed.map(toTurn)
  }
  adopt(sessionId: string, except: string): readonly Statement[] {
    return this.#store.adopt(sessionId, except, this.#owners.id)
  }
}

/** An earlier version did not write down who asked: no agent has this id, so that the turn may use no tool. */
const UNKNOWN_AGENTS: readonly string[] = ['']

function toTurn(row: TurnRow): Turn {
  return {
    id: row.id,
    agentId: row.agent_id,
    sessionId: row.session_id,
    entryPoint: row.entry_point,
    state: row.state,
    onCrash: row.on_crash,
    options: row.options,
    owner: row.owner,
    createdAt: row.created_at,
    onBehalf: row.on_behalf ?? (row.entry_point === 'agent' ? UNKNOWN_AGENTS : []),
    error: row.error ?? undefined,
    failure: row.failure ?? undefined,
  }
}
function toText(traces: readonly Trace[]): string | null {
  return traces.length === 0 ? null : JSON.stringify(traces.map(kept))
}
/** Without the fields that are columns of the turn. */
function kept({
  agentId: _agent,
  sessionId: _session,
  turnId: _turn,
  ...trace
}: Trace): Omit<Trace, 'agentId' | 'sessionId' | 'turnId'> {
  return trace
}
function toEffect(row: EffectRow): Effect {
  return {
    key: row.key,
    turnId: row.turn_id,
    kind: row.kind,
    name: row.name,
    state: row.state,
    input: row.input,
    result: row.result ?? undefined,
  }
}
function toTrace(row: TraceRow): Trace {
  const { input_tokens: input, output_tokens: output } = row
  return {
    id: row.id,
    agentId: row.agent_id,
    sessionId: row.session_id,
    turnId: row.turn_id,
    kind: row.kind,
    name: row.name,
    callId: row.call_id ?? undefined,
    iteration: row.iteration,
    startedAt: row.started_at,
    durationMs: row.duration_ms,
    firstMs: row.first_ms ?? undefined,
    failed: row.failed !== 0,
    tokens: input === null || output === null ? undefined : { input, output },
    input: row.input,
    output: row.output,
  }
}
