import { defineService, notify } from 'svc/sdk'
import type { ErrorCode, Statement } from 'svc/sdk'

/** `waiting`: a person has to decide about a call; such a turn goes on after a restart, whatever its entry point. */
export type TurnState = 'queued' | 'running' | 'waiting' | 'done' | 'failed' | 'cancelled' | 'interrupted'
/** The entry point of a turn. */
export type EntryPoint =
  | 'rest'
  | 'sse'
  | 'websocket'
  | 'openai'
  | 'cli'
  | 'channel'
  | 'agent'
  | 'schedule'
  | 'trigger'
  | 'task'
  | 'workflow'
  | 'hook'
  | 'a2a'
  | 'mcp'
  | 'peer'

/** The failure of a turn, as shown to callers. `retryable`: the same message may be answered later. */
export interface TurnFailure {
  readonly code: ErrorCode
  readonly message: string
  readonly retryable: boolean
  /** When a retry makes sense, as shown to the caller. */
  readonly retryAfterSecs?: number | undefined
}
export interface Turn {
  readonly id: string
  readonly agentId: string
  readonly sessionId: string
  readonly entryPoint: EntryPoint
  readonly state: TurnState
  /** After a crash: resume from the last recorded step, or mark as interrupted because no caller waits any more. */
  readonly onCrash: 'resume' | 'interrupt'
  /** Parameters the turn runs with, as JSON. */
  readonly options: string
  /** The daemon that works on it, or did; empty while nobody does. */
  readonly owner: string
  readonly createdAt: string
  /** Agents, by id, that asked for it, the first one first: it may do no more than each of them. */
  readonly onBehalf: readonly string[]
  readonly error: string | undefined
  /** Of one that failed. */
  readonly failure: TurnFailure | undefined
}
export type NewTurn = Omit<Turn, 'state' | 'error' | 'failure' | 'onBehalf' | 'owner'> & Partial<Pick<Turn, 'onBehalf'>>
/**
 * An act with an effect. `intent` is durable before the act and `done` or `failed` after it. What is still `intent`
 * when the process died is `unknown`: it is never repeated blindly.
 */
export interface Effect {
  /** The same on every retry: the tool call's id within its turn. */
  readonly key: string
  readonly turnId: string
  readonly kind: 'tool' | 'send' | 'webhook'
  readonly name: string
  readonly state: 'intent' | 'done' | 'failed' | 'unknown'
  /** JSON. */
  readonly input: string
  /** What `settle` was given. */
  readonly result: string | undefined
}

/** One call of a model or a tool, as it was. */
export interface Trace {
  /** Later ones sort after earlier ones. */
  readonly id: string
  readonly agentId: string
  readonly sessionId: string
  readonly turnId: string
  readonly kind: 'model' | 'tool'
  /** The tool, or `provider/model`. */
  readonly name: string
  /** Of a tool call. */
  readonly callId?: string | undefined
  /** Which call of the model in the turn this is, or belongs to; from 1. */
  readonly iteration: number
  /** ISO 8601 UTC. */
  readonly startedAt: string
  readonly durationMs: number
  /** Until the model began to answer. */
  readonly firstMs?: number | undefined
  readonly failed: boolean
  /** Of a call of a model. */
  readonly tokens?: { readonly input: number; readonly output: number } | undefined
  /** Arguments as JSON, cut; empty for a model. */
  readonly input: string
  /** The beginning of the output, or why it failed. */
  readonly output: string
}

export interface Counts {
  readonly turns: Readonly<Partial<Record<TurnState, number>>>
  readonly toolCalls: number
  readonly failedToolCalls: number
}
/** An effect of kind `send`, with its times. */
export interface Send extends Effect {
  /** ISO 8601 UTC. */
  readonly createdAt: string
  readonly settledAt: string | undefined
}

export interface Journal {
  /** A new turn; `running` when nothing is in its way. `owner`: another daemon is to work on it. */
  accept(turn: NewTurn, state?: 'queued' | 'running', owner?: string): Statement
  /** A turn that is done, with its only effect: one that needed no record before it ended. */
  done(
    turn: NewTurn,
    effect: Pick<Effect, 'key' | 'kind' | 'name' | 'input'> & {
      readonly state: 'done' | 'failed'
      readonly result: string
    },
    traces: readonly Trace[],
  ): readonly Statement[]
  /**
   * Moves a turn; changes nothing when it is in an end state already. `traces`, those of its last step, lie with it
   * then.
   */
  move(
    turnId: string,
    state: TurnState,
    fault?: Partial<Pick<Turn, 'error' | 'failure'>>,
    traces?: readonly Trace[],
  ): Statement
  find(turnId: string): Promise<Turn | undefined>
  /** Turns of an agent, newest first. */
  turns(agentId: string, limit: number): Promise<readonly Turn[]>
  /** Turns that have not ended: all, or those of a session or of an agent. The oldest first. */
  open(where?: { readonly sessionId?: string; readonly agentId?: string }): Promise<readonly Turn[]>
  /** Turns of all agents that failed, by their ids, those after one. */
  failed(after: string, limit: number): Promise<readonly Turn[]>
  intend(effect: Pick<Effect, 'key' | 'turnId' | 'kind' | 'name' | 'input'>): Statement
  /** `unknown`: a call was cut off, and the model was told so. */
  settle(key: string, state: 'done' | 'failed' | 'unknown', result: string): Statement
  effects(turnId: string): Promise<readonly Effect[]>
  /** Statements for the batch of a step that does not end the turn. */
  trace(traces: readonly Trace[]): readonly Statement[]
  /**
   * Newest first. Only the newest of each agent are kept, and those of the last step of each turn as long as the turn.
   */
  traces(agentId: string, limit: number): Promise<readonly Trace[]>
  /** How many turns of an agent there are in each state, and how many of its tool calls were answered and failed. */
  counts(agentId: string): Promise<Counts>
  /** What an agent sent out of the daemon, newest first. */
  sends(agentId: string, limit: number): Promise<readonly Send[]>
  /** Gives up this process's claim, so that the next `orphans` hands the turn out again. */
  release(turnId: string): Statement
  /**
   * Turns that never ended and that no live process works on: those of an earlier process on this home, of a daemon on
   * the same database that is dead, and released ones, oldest first. Claims them for this process; their effects that
   * are still `intent` become `unknown`. `only`: those with these options.
   */
  orphans(only?: string): Promise<readonly Turn[]>
  /**
   * Makes the open turns of a session this daemon's, but for those with these options; what they had begun becomes
   * `unknown`. For the batch in which this daemon takes the session over.
   */
  adopt(sessionId: string, except: string): readonly Statement[]
}
export const Journal = defineService<Journal>()('journal')

/** A daemon on the same database died or let go of turns: `orphans` hands them out. */
export const TurnsAbandoned = notify<{ readonly owners: number }>('journal:turns-abandoned')
