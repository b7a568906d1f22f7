import type { Period } from './schema.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const LENGTH_MS: Readonly<Record<Period, number>> = { hour: HOUR_MS, day: DAY_MS, week: 7 * DAY_MS, month: 30 * DAY_MS }

/**
 * Where a period begins, ISO 8601 UTC. Decision: the interface names the periods only; they reach back from now (a
 * month is 30 days), so that the figure does not drop to nothing at midnight. `today` in the summary is the calendar
 * day in UTC.
 */
export function periodStart(period: Period, now: number): string {
  return new Date(now - LENGTH_MS[period]).toISOString()
}
export function dayStart(now: number, daysBack = 0): string {
  return new Date(now - (now % DAY_MS) - daysBack * DAY_MS).toISOString()
}
export function hourStart(now: number): string {
  return new Date(now - (now % HOUR_MS)).toISOString()
}
export function nextHour(now: number): string {
  return new Date(now - (now % HOUR_MS) + HOUR_MS).toISOString()
}
