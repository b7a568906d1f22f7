import { newId } from 'svc/internal'
import { costNano, toUsd } from 'svc/providers'
import type { ToolCall, Usage } from 'svc/providers'
import { omitUndefined } from 'svc/sdk'
import type { Recovery, Statement } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import type { Journal, NewTurn, Trace, TurnFailure, TurnState } from '../../journal/contract.ts'
import type { ResolvedModel } from '../../providers/contract.ts'
import type { Block, Label, Message, Sessions } from '../../sessions/contract.ts'
import type { UsageLedger } from '../../usage/contract.ts'
import type { Declassification } from '../safety/taint.ts'
import type { ReleaseReservation } from './model-caller.ts'
import type { LiveTurn } from './live-turn.ts'
import type { TurnProgress } from './progress.ts'
import type { Outcome, ToolOutcome } from './tool-step.ts'

/** What a person did about a failed or interrupted turn. */
export type SettledBy = 'retried' | 'dropped'

export interface TurnRecordDeps {
  readonly sessions: Sessions
  readonly journal: Journal
  readonly audit: Audit
  readonly usage: () => UsageLedger | undefined
  readonly commit: (statements: readonly Statement[]) => Promise<unknown>
  readonly now: () => string
}
export interface SummaryCall {
  readonly usage: Usage
  readonly startedAt: string
  readonly durationMs: number
  readonly output: string
  readonly release?: ReleaseReservation | undefined
}
/** What the model wrote, and the calls it asks for. */
interface ModelStep {
  readonly text: string
  readonly reasoning?: string | undefined
  readonly calls: readonly ToolCall[]
  readonly replay?: string | undefined
}
type TurnFacts = Pick<LiveTurn, 'id' | 'agentId' | 'sessionId' | 'entryPoint'> & {
  readonly sender?: LiveTurn['sender']
}
/** What a turn's batches begin with. */
export interface Fenced {
  readonly fence?: readonly Statement[] | undefined
}
type Traces = { takeTraces(): readonly Trace[] }

/** How long a batch proves that the session is still held: well below any lease. */
const CONFIRMED_MS = 1_000

/** The statements for each thing that happens in a turn. The caller decides which of them go into one batch. */
export class TurnRecord {
  readonly #deps: TurnRecordDeps
  /** When a batch of a session that is held was committed last. */
  readonly #confirmed = new WeakMap<readonly Statement[], number>()
  constructor(deps: TurnRecordDeps) {
    this.#deps = deps
  }

  /** Settles when durable. Every batch of a turn goes through here, so that none is written once its session is lost. */
  async commit(turn: Fenced, statements: readonly Statement[]): Promise<void> {
    const { fence = [] } = turn
    await this.#deps.commit(fence.length === 0 ? statements : [...fence, ...statements])
    if (fence.length > 0) this.#confirmed.set(fence, performance.now())
  }
  /** Before an act that no batch can take back: throws when another daemon has taken the session over. */
  async confirm({ fence = [] }: Fenced): Promise<void> {
    if (fence.length === 0 || performance.now() - (this.#confirmed.get(fence) ?? -Infinity) < CONFIRMED_MS) return
    await this.commit({ fence }, [])
  }

  /**
   * Without an audit entry: a turn that is on disk ends, in this process or the next, and every end has one. `owner`:
   * the daemon that is to work on it, if not this one.
   */
  accepted(
    turn: TurnFacts & Pick<LiveTurn, 'options' | 'resumable' | 'onBehalf'>,
    blocks: readonly Block[],
    state: 'running' | 'queued',
    owner?: string,
  ): Statement[] {
    const { sessions, journal } = this.#deps
    const { id, agentId, sessionId, entryPoint, resumable, onBehalf } = turn
    const onCrash = resumable ? 'resume' : 'interrupt'
    const options = JSON.stringify(turn.options)
    const createdAt = this.#deps.now()
    return [
      ...sessions.ensure(sessionId, agentId),
      ...sessions.append(sessionId, this.#message(turn, 'user', blocks), { opens: true }),
      journal.accept({ id, agentId, sessionId, entryPoint, onCrash, options, createdAt, onBehalf }, state, owner),
    ]
  }
  /** A turn that is a single call, which nobody asked for in words; it is on disk before the call is made. */
  callBegins(turn: TurnFacts, { id, name, args }: ToolCall): Statement[] {
    const { journal } = this.#deps
    return [
      journal.accept(this.oneCall(turn), 'running'),
      journal.intend({
        key: effectKey(turn.id, id),
        turnId: turn.id,
        kind: 'tool',
        name,
        input: JSON.stringify(args ?? null),
      }),
    ]
  }
  /** A turn that is a single call. */
  oneCall({ id, agentId, sessionId, entryPoint }: TurnFacts): NewTurn {
    const createdAt = this.#deps.now()
    return { id, agentId, sessionId, entryPoint, createdAt, onCrash: 'interrupt', options: ONE_CALL }
  }
  waiting(turnId: string): Statement {
    return this.#deps.journal.move(turnId, 'waiting')
  }
  running(turnId: string): Statement {
    return this.#deps.journal.move(turnId, 'running')
  }
  released(turnId: string): Statement {
    return this.#deps.journal.release(turnId)
  }

  /** `labels` are those of the model's words. */
  answer(
    turn: TurnFacts,
    { text, reasoning = '' }: Pick<ModelStep, 'text' | 'reasoning'>,
    labels: readonly Label[],
    mark?: Message['mark'],
  ): readonly Statement[] {
    const message = this.#message(turn, 'assistant', toBlocks(text, reasoning, labels))
    return this.#deps.sessions.append(turn.sessionId, mark === undefined ? message : { ...message, mark })
  }
  toolCalls(
    turn: TurnFacts,
    { text, reasoning = '', calls, replay }: ModelStep,
    labels: readonly Label[],
  ): Statement[] {
    const { sessions, journal } = this.#deps
    const blocks = toBlocks(text, reasoning, labels)
    for (const [index, { id, name, args }] of calls.entries())
      blocks.push({
        type: 'call',
        id,
        tool: name,
        args: args ?? null,
        ...(index === 0 && omitUndefined({ replay })),
      })
    return [
      ...sessions.append(turn.sessionId, this.#message(turn, 'assistant', blocks)),
      ...calls.map(({ id, name, args }) =>
        journal.intend({
          key: effectKey(turn.id, id),
          turnId: turn.id,
          kind: 'tool',
          name,
          input: JSON.stringify(args ?? null),
        }),
      ),
    ]
  }
  receipt(turn: TurnFacts, call: ToolCall, outcome: Outcome, state?: 'unknown'): Statement {
    const ended = outcome.failed ? 'failed' : 'done'
    return this.#deps.journal.settle(effectKey(turn.id, call.id), state ?? ended, toReceipt(outcome))
  }
  /** The end of the process cut a call off. */
  callCut({ id, agentId }: TurnFacts, call: ToolCall, outcome: Recovery['outcome']): Statement {
    const what = {
      done: 'had its effect all the same',
      repeat: 'is made again with the same key',
      unknown: 'may have had its effect, and is not made again',
    }[outcome]
    return this.#deps.audit.entry({
      event: 'tool_invoked',
      agentId,
      details: `turn ${id}: ${call.name} was cut off by the end of the process: it ${what}`,
    })
  }
  toolResults(turn: TurnFacts, results: readonly ToolOutcome[]): Statement[] {
    const { sessions } = this.#deps
    const blocks = results.map(({ call, outcome }): Block => ({
      type: 'result',
      callId: call.id,
      tool: call.name,
      text: outcome.text,
      failed: outcome.failed,
      ...labelsOf(outcome),
    }))
    return [
      ...sessions.append(turn.sessionId, this.#message(turn, 'tool', blocks)),
      ...results.map((result) => this.toolInvoked(turn, result)),
    ]
  }
  toolInvoked(turn: TurnFacts, { call, outcome }: ToolOutcome): Statement {
    return this.#deps.audit.entry({
      event: 'tool_invoked',
      agentId: turn.agentId,
      details: `turn ${turn.id}: ${call.name} ${outcome.failed ? 'failed' : 'done'}`,
    })
  }
  /** All that are not recorded yet. */
  traces(progress: Traces): readonly Statement[] {
    return this.#deps.journal.trace(progress.takeTraces())
  }
  /** Those of a turn with many steps. */
  tracesSoFar(progress: Pick<TurnProgress, 'takeManyTraces'>): readonly Statement[] {
    return this.#deps.journal.trace(progress.takeManyTraces())
  }
  /** A label that was let through to a sink, by whom, for exactly which arguments. Never the value. */
  declassified({ id, agentId }: TurnFacts, { label, sink, by, argumentHash }: Declassification): Statement {
    return this.#deps.audit.entry({
      event: 'capability_check',
      agentId,
      details: `turn ${id}: ${label} declassified for ${sink} by ${by}, arguments ${argumentHash}`,
    })
  }
  injectionSuspected({ id, agentId }: TurnFacts, text: string): Statement {
    return this.#deps.audit.entry({ event: 'injection_suspected', agentId, details: `turn ${id}: ${text}` })
  }
  callWithheld({ id, agentId }: TurnFacts, text: string): Statement {
    return this.#deps.audit.entry({ event: 'taint_violation', agentId, details: `turn ${id}: refused: ${text}` })
  }
  compacted(
    session: { readonly agentId: string; readonly sessionId: string },
    summarized: number,
    kept: number,
    reason: string,
  ): Statement {
    const { agentId, sessionId } = session
    return this.#deps.audit.entry({
      event: 'session_changed',
      agentId,
      details: `session ${sessionId} compacted (${reason}): ${summarized} messages summarized, ${kept} kept`,
    })
  }
  /** Records what a summary cost, by itself or for the turn that waits for it. Settles when durable. */
  async commitSummary(
    { fence, ...turn }: { readonly agentId: string; readonly sessionId: string; readonly turnId: string } & Fenced,
    model: ResolvedModel,
    { usage, startedAt, durationMs, output, release }: SummaryCall,
  ): Promise<void> {
    const trace: Trace = {
      ...turn,
      id: newId(),
      kind: 'model',
      name: `${model.provider}/${model.model}`,
      iteration: 1,
      startedAt,
      durationMs,
      failed: false,
      tokens: { input: usage.input, output: usage.output },
      input: '',
      output,
    }
    await this.commit({ fence }, [
      ...(release?.() ?? []),
      ...this.usage({ ...turn, id: turn.turnId }, model, usage),
      ...this.#deps.journal.trace([trace]),
    ])
  }
  usage(turn: Pick<TurnFacts, 'id' | 'agentId' | 'sessionId'>, model: ResolvedModel, usage: Usage): Statement[] {
    const ledger = this.#deps.usage()
    if (!ledger) return []
    const entry = ledger.entry({
      agentId: turn.agentId,
      sessionId: turn.sessionId,
      turnId: turn.id,
      provider: model.provider,
      model: model.model,
      inputTokens: usage.input,
      outputTokens: usage.output,
      cachedInputTokens: usage.cachedInput ?? 0,
      costUsd: toUsd(costNano(model.price, usage)),
      estimated: usage.estimated ?? false,
    })
    return [entry]
  }
  ended(
    turn: TurnFacts,
    state: Exclude<TurnState, 'queued' | 'running' | 'waiting'>,
    details: string,
    progress?: Traces,
    failure?: TurnFailure,
  ): Statement[] {
    const { journal } = this.#deps
    return [
      journal.move(turn.id, state, state === 'done' ? {} : { error: details, failure }, progress?.takeTraces()),
      this.endEntry(turn, state, details),
    ]
  }
  /** What the audit trail says about the end of a turn. */
  endEntry(turn: TurnFacts, state: TurnState, details: string): Statement {
    return this.#deps.audit.entry({
      event: state === 'interrupted' ? 'turn_interrupted' : 'agent_message',
      agentId: turn.agentId,
      details: `turn ${turn.id} by ${turn.entryPoint} ${state}: ${details}`,
      actor: turn.sender,
    })
  }

  /**
   * Hides the messages of a failed turn from models, and shows them with the reason. A note names what its tools did.
   */
  failed(turn: TurnFacts, failure: TurnFailure, effects: readonly string[]): readonly Statement[] {
    return [...this.#deps.sessions.fail(turn.sessionId, turn.id, failure), ...this.#effects(turn, 'failed', effects)]
  }
  /** A person retried or dropped a failed turn. `effects`: tools that no note names yet. */
  hidden(turn: TurnFacts, because: SettledBy, effects: readonly string[]): readonly Statement[] {
    return [
      ...this.#deps.sessions.hide(turn.sessionId, turn.id, because),
      ...this.#effects(turn, 'was interrupted', effects),
      this.#deps.audit.entry({
        event: 'agent_message',
        agentId: turn.agentId,
        details: `turn ${turn.id} by ${turn.entryPoint} ${because}: its message is out of view`,
      }),
    ]
  }

  #effects(turn: TurnFacts, how: string, effects: readonly string[]): readonly Statement[] {
    if (effects.length === 0) return []
    const tools = [...new Set(effects)].join(', ')
    const text = `[A message ${how} here before it was answered. Tools had run by then: ${tools}.]`
    return this.#deps.sessions.append(turn.sessionId, this.#message(turn, 'system', [{ type: 'text', text }]))
  }
  #message(turn: TurnFacts, role: Message['role'], blocks: readonly Block[]): Message {
    return { id: newId(), role, blocks, turnId: turn.id, createdAt: this.#deps.now() }
  }
}

function labelsOf({ labels = [] }: Outcome): Pick<Outcome, 'labels'> {
  return labels.length === 0 ? {} : { labels }
}
/** What the journal keeps of an outcome. */
export function toReceipt(outcome: Outcome): string {
  const { text, failed } = outcome
  return JSON.stringify({ text, failed, ...labelsOf(outcome) })
}
function toBlocks(text: string, reasoning: string, labels: readonly Label[]): Block[] {
  const blocks: Block[] = []
  if (reasoning !== '') blocks.push({ type: 'reasoning', text: reasoning })
  if (text !== '') blocks.push({ type: 'text', text, ...(labels.length > 0 && { labels }) })
  return blocks
}

/** The options of a turn that is a single call of a tool, without messages. */
export const ONE_CALL = JSON.stringify({ toolCall: true })

/** The same whenever the call is made again: a call's id is unique within its turn. */
export function effectKey(turnId: string, callId: string): string {
  return `${turnId}:${callId}`
}
