import { v7 } from 'uuid'
import { costNano, toUsd } from 'svc/providers'
import type { ToolCall, Usage } from 'svc/providers'
import type { Statement } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import type { Journal, Trace, TurnFailure, TurnState } from '../../journal/contract.ts'
import type { ResolvedModel } from '../../providers/contract.ts'
import type { Block, Label, Message, Sessions } from '../../sessions/contract.ts'
import type { UsageLedger } from '../../usage/contract.ts'
import type { LiveTurn } from './live-turn.ts'
import type { Outcome } from './loop.ts'
import type { Declassification } from '../safety/taint.ts'
import type { ReleaseReservation } from './budget-gate.ts'

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
  readonly giveBack?: ReleaseReservation | undefined
}
/** What the model said before its calls. */
interface Said {
  readonly text: string
  readonly reasoning?: string | undefined
  readonly calls: readonly ToolCall[]
  readonly replay?: string | undefined
}
type TurnFacts = Pick<LiveTurn, 'id' | 'agentId' | 'sessionId' | 'entryPoint'> & { readonly asker?: LiveTurn['asker'] }

/** Says what is written for each thing that happens in a turn. Only statements: who calls decides what goes into one batch. */
export class TurnRecord {
  readonly #deps: TurnRecordDeps
  constructor(deps: TurnRecordDeps) {
    this.#deps = deps
  }

  /** Without an audit entry: a turn that is on disk ends, in this process or the next, and its end has one in every case. */
  accepted(
    turn: TurnFacts,
    blocks: readonly Block[],
    options: string,
    onCrash: 'resume' | 'interrupt',
    starts: boolean,
  ): Statement[] {
    const { sessions, journal } = this.#deps
    const { id, agentId, sessionId, entryPoint } = turn
    const createdAt = this.#deps.now()
    return [
      ...sessions.ensure(sessionId, agentId),
      ...sessions.append(sessionId, this.#message(turn, 'user', blocks), { opens: true }),
      journal.accept(
        { id, agentId, sessionId, entryPoint, onCrash, options, createdAt },
        starts ? 'running' : 'queued',
      ),
    ]
  }
  waiting(turnId: string): Statement {
    return this.#deps.journal.move(turnId, 'waiting')
  }
  running(turnId: string): Statement {
    return this.#deps.journal.move(turnId, 'running')
  }
  release(turnId: string): Statement {
    return this.#deps.journal.release(turnId)
  }

  /** `labels` is what the model's words carry. */
  said(
    turn: TurnFacts,
    { text, reasoning = '' }: Pick<Said, 'text' | 'reasoning'>,
    labels: readonly Label[],
    mark?: Message['mark'],
  ): readonly Statement[] {
    const message = this.#message(turn, 'assistant', [
      ...thought(reasoning),
      ...(text === '' ? [] : [labelled(text, labels)]),
    ])
    return this.#deps.sessions.append(turn.sessionId, mark === undefined ? message : { ...message, mark })
  }
  calls(turn: TurnFacts, { text, reasoning = '', calls, replay }: Said, labels: readonly Label[]): Statement[] {
    const { sessions, journal } = this.#deps
    const blocks: Block[] = [...thought(reasoning), ...(text === '' ? [] : [labelled(text, labels)])]
    for (const { id, name, args } of calls)
      blocks.push({
        type: 'call',
        id,
        tool: name,
        args: args ?? null,
        ...(replay !== undefined && id === calls[0]?.id && { replay }),
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
  receipt(turn: TurnFacts, call: ToolCall, outcome: Outcome): Statement {
    return this.#deps.journal.settle(
      effectKey(turn.id, call.id),
      outcome.failed ? 'failed' : 'done',
      JSON.stringify({ text: outcome.text, failed: outcome.failed, ...labelsOf(outcome) }),
    )
  }
  results(turn: TurnFacts, results: readonly { readonly call: ToolCall; readonly outcome: Outcome }[]): Statement[] {
    const { sessions, audit } = this.#deps
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
      ...results.map(({ call, outcome }) =>
        audit.entry({
          event: 'tool_invoked',
          agentId: turn.agentId,
          details: `turn ${turn.id}: ${call.name} ${outcome.failed ? 'failed' : 'done'}`,
        }),
      ),
    ]
  }
  traces(progress: { takeTraces(): readonly Trace[] }): readonly Statement[] {
    return this.#deps.journal.trace(progress.takeTraces())
  }
  /** A label that was let through to a sink, by whom, for exactly which arguments. Never the value. */
  declassified({ id, agentId }: TurnFacts, { label, sink, by, argumentHash }: Declassification): Statement {
    return this.#deps.audit.entry({
      event: 'capability_check',
      agentId,
      details: `turn ${id}: ${label} declassified for ${sink} by ${by}, arguments ${argumentHash}`,
    })
  }
  suspected({ id, agentId }: TurnFacts, text: string): Statement {
    return this.#deps.audit.entry({ event: 'injection_suspected', agentId, details: `turn ${id}: ${text}` })
  }
  withheld({ id, agentId }: TurnFacts, text: string): Statement {
    return this.#deps.audit.entry({ event: 'taint_violation', agentId, details: `turn ${id}: refused: ${text}` })
  }
  compacted(agentId: string, sessionId: string, summarized: number, kept: number, because: string): Statement {
    return this.#deps.audit.entry({
      event: 'session_changed',
      agentId,
      details: `session ${sessionId} compacted (${because}): ${summarized} messages summarized, ${kept} kept`,
    })
  }
  /** What a summary cost, in the turn that had to wait for it or by itself. Settles when durable. */
  async summarised(
    of: { readonly agentId: string; readonly sessionId: string; readonly turnId: string },
    model: ResolvedModel,
    call: SummaryCall,
  ): Promise<void> {
    const { turnId } = of
    await this.#deps.commit([
      ...(call.giveBack?.() ?? []),
      ...this.spent({ ...of, id: turnId, entryPoint: 'rest' }, model, call.usage),
      ...this.#deps.journal.trace([
        {
          ...of,
          id: v7(),
          kind: 'model',
          name: `${model.provider}/${model.model}`,
          iteration: 1,
          startedAt: call.startedAt,
          durationMs: call.durationMs,
          failed: false,
          tokens: { input: call.usage.input, output: call.usage.output },
          input: '',
          output: call.output,
        },
      ]),
    ])
  }
  spent(turn: TurnFacts, model: ResolvedModel, usage: Usage): Statement[] {
    const ledger = this.#deps.usage()
    if (!ledger) return []
    return [
      ledger.entry({
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
      }),
    ]
  }
  ended(
    turn: TurnFacts,
    state: Exclude<TurnState, 'queued' | 'running' | 'waiting'>,
    details: string,
    progress?: { takeTraces(): readonly Trace[] },
    failure?: TurnFailure,
  ): Statement[] {
    const { journal, audit } = this.#deps
    return [
      journal.move(turn.id, state, state === 'done' ? {} : { error: details, failure }, progress?.takeTraces()),
      audit.entry({
        event: state === 'interrupted' ? 'turn_interrupted' : 'agent_message',
        agentId: turn.agentId,
        details: `turn ${turn.id} by ${turn.entryPoint} ${state}: ${details}`,
        actor: turn.asker,
      }),
    ]
  }

  /**
   * The turn failed: its messages are shown with the reason, and no model is given them again. What its tools did stays done, so that is
   * noted in their place.
   */
  failed(turn: TurnFacts, failure: TurnFailure, effects: readonly string[]): readonly Statement[] {
    return [...this.#deps.sessions.fail(turn.sessionId, turn.id, failure), ...this.#effects(turn, 'failed', effects)]
  }
  /** A turn that failed was asked again or dropped by a person. `effects`: what no note says yet. */
  hidden(turn: TurnFacts, because: 'retried' | 'dropped', effects: readonly string[]): readonly Statement[] {
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
    const text = `[A message ${how} here before it was answered. Tools had run by then: ${[...new Set(effects)].join(', ')}.]`
    return this.#deps.sessions.append(turn.sessionId, this.#message(turn, 'system', [{ type: 'text', text }]))
  }
  #message(turn: TurnFacts, role: Message['role'], blocks: readonly Block[]): Message {
    return { id: v7(), role, blocks, turnId: turn.id, createdAt: this.#deps.now() }
  }
}

function labelsOf({ labels }: Outcome): Pick<Outcome, 'labels'> {
  return labels === undefined || labels.length === 0 ? {} : { labels }
}
function thought(text: string): Block[] {
  return text === '' ? [] : [{ type: 'reasoning', text }]
}
function labelled(text: string, labels: readonly Label[]): Block {
  return { type: 'text', text, ...(labels.length > 0 && { labels }) }
}

/** The same whenever the call is made again: a call's id is unique within its turn. */
export function effectKey(turnId: string, callId: string): string {
  return `${turnId}:${callId}`
}
