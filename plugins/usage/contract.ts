import { defineService } from 'svc/sdk'
import type { Statement } from 'svc/sdk'

/** One completed call of a model. */
export interface UsageRecord {
  readonly agentId: string
  readonly sessionId: string
  readonly turnId: string
  readonly provider: string
  readonly model: string
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedInputTokens: number
  /** `null` when no price is known for the model; never 0 for that reason. */
  readonly costUsd: number | null
  /** The provider did not report tokens, so they are counted here. */
  readonly estimated: boolean
}
/** What an agent used, or one of its sessions. */
export interface UsageTotals {
  readonly inputTokens: number
  readonly outputTokens: number
  /** Of the calls whose price is known. */
  readonly costUsd: number
  readonly calls: number
  /** Calls whose price is not known. */
  readonly unpriced: number
}
/** What one turn used. */
export interface TurnUse extends UsageTotals {
  /** The model that was called last. */
  readonly provider: string
  readonly model: string
}
export interface UsageLedger {
  /** A statement for the batch that ends the turn. */
  entry(record: UsageRecord): Statement
  totals(agentId: string, sessionId?: string): Promise<UsageTotals>
  /** `undefined` when no model was called in it. */
  turn(turn: { readonly id: string; readonly agentId: string; readonly sessionId: string }): Promise<TurnUse | undefined>
}
export const Usage = defineService<UsageLedger>()('usage')
