import type { SpendLimits, Spent } from '../usage/contract.ts'
import type { BudgetPeriod, Resources } from './contract.ts'
import type { BudgetConfig } from './config.ts'

/** What was set over the API: `null` leaves it to the configuration or the manifest, 0 is unlimited. USD and tokens. */
export interface SetLimits {
  readonly hourUsd: number | null
  readonly dayUsd: number | null
  readonly monthUsd: number | null
  readonly hourTokens: number | null
  readonly alertThreshold: number | null
  /** Only for the limits of all agents: tokens an hour for an agent whose manifest sets no limit. */
  readonly defaultHourTokens: number | null
}
export const unset: SetLimits = {
  hourUsd: null,
  dayUsd: null,
  monthUsd: null,
  hourTokens: null,
  alertThreshold: null,
  defaultHourTokens: null,
}

export function limitsOfAll(set: SetLimits | undefined, config: BudgetConfig): SpendLimits {
  return {
    hourNano: toNano(set?.hourUsd ?? config.max_hourly_usd),
    dayNano: toNano(set?.dayUsd ?? config.max_daily_usd),
    monthNano: toNano(set?.monthUsd ?? config.max_monthly_usd),
  }
}
export function limitsOfAgent(
  set: SetLimits | undefined,
  resources: Resources,
  defaultHourTokens: number,
): SpendLimits {
  const tokens = set?.hourTokens ?? (resources.max_llm_tokens_per_hour || defaultHourTokens)
  return {
    hourNano: toNano(set?.hourUsd ?? resources.max_cost_per_hour_usd),
    dayNano: toNano(set?.dayUsd ?? resources.max_cost_per_day_usd),
    monthNano: toNano(set?.monthUsd ?? resources.max_cost_per_month_usd),
    hourTokens: tokens === 0 ? undefined : tokens,
  }
}
export function limitsMoney({ hourNano, dayNano, monthNano }: SpendLimits): boolean {
  return hourNano !== undefined || dayNano !== undefined || monthNano !== undefined
}
export function limitsAnything(limits: SpendLimits): boolean {
  return limitsMoney(limits) || limits.hourTokens !== undefined
}

/** However small, a limit is one. */
function toNano(usd: number): number | undefined {
  return usd === 0 ? undefined : Math.min(Number.MAX_SAFE_INTEGER, Math.max(1, Math.round(usd * 1_000_000_000)))
}

/** One limit and how far it is used. Billionths of a dollar, or tokens. */
export interface Line {
  readonly period: BudgetPeriod
  readonly unit: 'usd' | 'tokens'
  readonly limit: number
  readonly spent: number
  readonly held: number
}

/** The limits there are, the shortest period first. */
export function linesOf(limits: SpendLimits, spent: Spent): readonly Line[] {
  const line = (
    period: BudgetPeriod,
    unit: Line['unit'],
    limit: number | undefined,
    used: number,
    held: number,
  ): Line[] => (limit === undefined ? [] : [{ period, unit, limit, spent: used, held }])
  return [
    ...line('hour', 'usd', limits.hourNano, spent.hourNano, spent.heldNano),
    ...line('hour', 'tokens', limits.hourTokens, spent.hourTokens, spent.heldTokens),
    ...line('day', 'usd', limits.dayNano, spent.dayNano, spent.heldNano),
    ...line('month', 'usd', limits.monthNano, spent.monthNano, spent.heldNano),
  ]
}

/** Where a period begins that holds a time, ISO 8601 UTC, and where the next one does. */
export function periodOf(period: BudgetPeriod, at: number): { readonly startsAt: string; readonly resetsAt: string } {
  const date = new Date(at)
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
  const [start, end] =
    period === 'month'
      ? [Date.UTC(year, month), Date.UTC(year, month + 1)]
      : period === 'day'
        ? [Date.UTC(year, month, day), Date.UTC(year, month, day + 1)]
        : [Date.UTC(year, month, day, date.getUTCHours()), Date.UTC(year, month, day, date.getUTCHours() + 1)]
  return { startsAt: new Date(start).toISOString(), resetsAt: new Date(end).toISOString() }
}

export type Status = 'ok' | 'warning' | 'exceeded'
export function statusOf(lines: readonly Line[], threshold: number): Status {
  if (lines.some(({ spent, limit }) => spent >= limit)) return 'exceeded'
  return threshold > 0 && lines.some(({ spent, limit }) => spent >= limit * threshold) ? 'warning' : 'ok'
}
