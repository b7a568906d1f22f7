import { defineService, gate, notify, transform } from 'svc/sdk'
import type { CompletionRequest, Usage } from 'svc/providers'
import type { Agent } from '../agents/contract.ts'
import type { Door } from '../journal/contract.ts'

export type TurnEvent =
  | { readonly type: 'thinking' }
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'tool-started'; readonly tool: string; readonly callId: string }
  | { readonly type: 'tool-ended'; readonly tool: string; readonly callId: string; readonly input: unknown; readonly output: string; readonly failed: boolean }
  | { readonly type: 'end'; readonly result: TurnResult }

export interface TurnResult {
  readonly turnId: string
  readonly sessionId: string
  readonly text: string
  readonly usage: Usage
  /** Calls of the model. */
  readonly iterations: number
  /** `null` when the price of a model that was used is not known. */
  readonly costUsd: number | null
  readonly provider: string
  readonly model: string
  readonly stop: 'done' | 'length' | 'refused' | 'cancelled' | 'iterations'
}

export interface TurnRequest {
  readonly agentId: string
  /** The agent's active session when absent. */
  readonly sessionId?: string
  readonly text: string
  readonly images?: readonly { readonly mime: string; readonly base64: string }[]
  readonly door: Door
  readonly temperature?: number
  readonly maxTokens?: number
  readonly thinking?: boolean
}
/** A turn that is on disk. It runs to its end whether or not anyone listens. */
export interface AcceptedTurn {
  readonly id: string
  readonly sessionId: string
  /**
   * Every event from the start, ending with `end`; throws what made the turn fail. Deltas of text are joined while the reader is
   * slower than the model, so that nothing is lost and nothing piles up. Leaving early stops nothing.
   */
  events(): AsyncIterable<TurnEvent>
  /** The same without events. */
  result(): Promise<TurnResult>
  /** Ends the turn; what was said so far is kept and marked. */
  cancel(): void
}
export interface Chat {
  /** Settles when the turn is durable. Throws `agent_not_found`, `invalid_request`, `payload_too_large` before anything is written. */
  accept(request: TurnRequest): Promise<AcceptedTurn>
  /** Cancels the running turn of an agent, or of one of its sessions. Whether there was one. */
  stop(agentId: string, sessionId?: string): boolean
}
export const Chat = defineService<Chat>()('chat')

export const TurnStarting = gate<{ readonly agent: Agent; readonly turnId: string; readonly sessionId: string }>('chat:turn-starting')
export const PromptBuilt = transform<CompletionRequest>('chat:prompt-built')
export const TurnEnded = notify<{ readonly agent: Agent; readonly door: Door; readonly result: TurnResult; readonly durationMs: number }>('chat:turn-ended')
export const TurnFailed = notify<{ readonly agent: Agent; readonly door: Door; readonly turnId: string; readonly message: string }>('chat:turn-failed')
/** A call the model asked for, before it is made. */
export interface ToolCallAttempt {
  readonly agent: Agent
  readonly turnId: string
  readonly sessionId: string
  /** Unique in the turn, and the same when the turn goes on after a restart. */
  readonly callId: string
  readonly tool: string
  readonly args: unknown
  readonly risk: 'read' | 'write' | 'execute'
  /** Labels its arguments carry. */
  readonly labels?: readonly string[]
  /** Why it will be refused unless a person approves exactly this call: label, source and sink. */
  readonly refusal?: string
  /** Aborts when the turn is stopped: a listener that waits for a person stops waiting. */
  readonly signal: AbortSignal
  /** Called by a listener when a person approved exactly these arguments; says who. */
  readonly approve?: (by: string) => void
}
/** A listener may wait, for a person to decide. A `Refusal` is told to the model as the result of the call. */
export const ToolCallStarting = gate<ToolCallAttempt>('tools:call-starting')
export const ToolCallEnded = notify<{ readonly agent: Agent; readonly turnId: string; readonly tool: string; readonly failed: boolean; readonly durationMs: number }>('tools:call-ended')
