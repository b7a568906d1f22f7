import { defineService, transform } from 'svc/sdk'
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
  /** A statement for the batch that ends the turn. Where a write may have an unknown outcome it counts once, however often it is written. */
  entry(record: UsageRecord): Statement
  totals(agentId: string, sessionId?: string): Promise<UsageTotals>
  /** `undefined` when no model was called in it. */
  turn(turn: {
    readonly id: string
    readonly agentId: string
    readonly sessionId: string
  }): Promise<TurnUse | undefined>
}
export const Usage = defineService<UsageLedger>()('usage')

/**
 * What was used since the hour, the day and the month (UTC) began, and what is set aside for calls that run. Money is
 * in billionths of a dollar, whole, so that sums are exact.
 */
export interface Spent {
  readonly hourNano: number
  readonly dayNano: number
  readonly monthNano: number
  /** Tokens in and out. */
  readonly hourTokens: number
  readonly heldNano: number
  readonly heldTokens: number
  /** Calls of today without a known price; no sum of money includes them. */
  readonly unpricedToday: number
}
/** Absent: unlimited. Billionths of a dollar, and tokens. */
export interface SpendLimits {
  readonly hourNano?: number | undefined
  readonly dayNano?: number | undefined
  readonly monthNano?: number | undefined
  readonly hourTokens?: number | undefined
}
export interface Claim {
  readonly id: string
  readonly agentId: string
  readonly nano: number
  readonly tokens: number
  /** A claim that nobody releases, because its process died, counts until then. ISO 8601 UTC. */
  readonly expiresAt: string
}
/** What a claim has to keep. */
export interface ClaimLimits {
  readonly all: SpendLimits
  readonly agent: SpendLimits
  /** What these agents spend together, the one that claims among them, is to keep these limits as well. */
  readonly shared?: readonly { readonly agentIds: readonly string[]; readonly limits: SpendLimits }[]
}
export interface SpendRank {
  readonly agentId: string
  readonly totalNano: number
  readonly todayNano: number
  readonly monthNano: number
  readonly calls: number
  readonly unpriced: number
}
/**
 * Keeps what is spent within limits, however many calls start at once, here and in every other process on the same
 * database.
 */
export interface Spending {
  /** Of one agent, or of all. */
  spent(agentId?: string): Promise<Spent>
  /**
   * Sets the claim aside, durable, unless that would pass a limit of all agents, of this one, or one that it shares with
   * others: then nothing is done and it is `false`.
   */
  claim(claim: Claim, limits: ClaimLimits): Promise<boolean>
  /** For the batch that records what was used instead. */
  release(claimId: string): Statement
  /** All that an agent ever spent, in billionths of a dollar. */
  total(agentId: string): Promise<number>
  /** Every agent that used something, who spent most first. */
  ranking(): Promise<readonly SpendRank[]>
  /** Names of removed agents, by id. */
  formerNames(): Promise<ReadonlyMap<string, string>>
}
export const Spending = defineService<Spending>()('spending')

/** The summary of usage collects the tokens that all agents together may use in an hour; `null` without a limit. */
export const ResolveHourlyQuota = transform<{ readonly tokens: number | null }>('usage:hourly-quota-asked')
