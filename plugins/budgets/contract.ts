import { defineService, notify } from 'svc/sdk'

export type BudgetPeriod = 'hour' | 'day' | 'month'
/** A limit that is nearly or wholly used up. */
export interface BudgetNotice {
  /** `undefined`: the limit of all agents together. */
  readonly agentId: string | undefined
  readonly period: BudgetPeriod
  readonly unit: 'usd' | 'tokens'
  readonly limit: number
  readonly spent: number
  /** Part of the limit, 1 is all. */
  readonly part: number
  /** When the period ends, ISO 8601 UTC. */
  readonly resetsAt: string
}
/** Once for each limit and period: the part of `alert_threshold` is used up. */
export const BudgetWarning = notify<BudgetNotice>('budgets:warning')
/** Once for each limit and period: a call of a model was refused. */
export const BudgetExceeded = notify<BudgetNotice>('budgets:exceeded')
/** Once for each agent and day: the price of a call is unknown, so a limit in money does not apply to it. */
export const BudgetUnpriced = notify<{ readonly agentId: string; readonly provider: string; readonly model: string }>(
  'budgets:unpriced',
)

export interface Budgets {
  /**
   * Whether a call of this agent has to pass the gate `ModelCallStarting`. Costs nothing; true also while the limits
   * are not read yet.
   */
  limits(agent: {
    readonly id: string
    readonly manifest: { readonly resources: Resources; readonly metadata: Readonly<Record<string, unknown>> }
  }): boolean
}
export interface Resources {
  readonly max_llm_tokens_per_hour: number
  readonly max_cost_per_hour_usd: number
  readonly max_cost_per_day_usd: number
  readonly max_cost_per_month_usd: number
}
export const Budgets = defineService<Budgets>()('budgets')
