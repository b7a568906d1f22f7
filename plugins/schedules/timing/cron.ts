import { messageOf } from 'svc/internal'
import { Cron } from 'croner'
import { Refusal } from 'svc/sdk'

/** The hours around a change of the clocks in which a wall-clock time can occur twice. */
const AROUND_CHANGE_MS = 3 * 3_600_000
const FIELDS = [
  ['minute', '0-59'],
  ['hour', '0-23'],
  ['day of the month', '1-31'],
  ['month', '1-12 or JAN-DEC'],
  ['day of the week', '0-7 or SUN-SAT'],
] as const
const MAX_EXPRESSION = 256
/** Creating a pattern costs more than asking it. */
const MAX_CACHED = 2_000

const patterns = new Map<string, Cron>()
const offsets = new Map<string, Intl.DateTimeFormat>()

/** Throws `invalid_request` that names the time zone. */
export function checkZone(zone: string): void {
  try {
    offsetFormat(zone)
  } catch (cause) {
    throw new Refusal(
      'invalid_request',
      `tz: there is no time zone "${zone.slice(0, 64)}"; use an IANA name such as Europe/Berlin`,
      { cause },
    )
  }
}

function countFields(fields: readonly string[]): string {
  if (fields[0] === '') return '0 fields'
  return fields.length === 1 ? '1 field' : `${fields.length} fields`
}

/** Throws `invalid_request` that names the field of the expression and what it may be. */
export function checkExpression(expression: string, zone: string, now: number): void {
  checkZone(zone)
  const fields = expression.trim().split(/\s+/)
  if (expression.length > MAX_EXPRESSION || fields.length !== FIELDS.length || fields[0] === '')
    throw invalid(
      `"${expression.slice(0, 80)}" has ${countFields(fields)}, and a cron expression has five: ` +
        'minute, hour, day of the month, month, day of the week, such as "30 9 * * MON-FRI"',
    )
  for (const [at, field] of fields.entries()) checkField(at, field)
  let next: number | undefined
  try {
    next = nextCron(expression, zone, now)
  } catch (cause) {
    throw invalid(`"${expression}": ${reasonOf(cause)}`, cause)
  }
  if (next === undefined) throw invalid(`"${expression}" never occurs: no year has that day of the month in that month`)
}

/** The first time after a moment, in milliseconds since 1970. `undefined` when there is none. */
export function nextCron(expression: string, zone: string, after: number): number | undefined {
  const pattern = patternOf(expression, zone)
  // A time that the night has twice counts the first time. Asked from in between, the pattern would give the second.
  let time = isNearChange(zone, after) ? after - AROUND_CHANGE_MS : after
  for (;;) {
    const next = pattern.nextRun(new Date(time))?.getTime()
    if (next === undefined || next > after) return next
    time = next
  }
}

/** A moment before the last `count` times up to `until`, to go on from with `nextCron`. */
export function beforeLast(expression: string, zone: string, count: number, until: number): number | undefined {
  const oldest = patternOf(expression, zone)
    .previousRuns(count, new Date(until + 1))
    .at(-1)
  return oldest === undefined ? undefined : oldest.getTime() - 1
}

function checkField(at: number, field: string): void {
  const [name, range] = FIELDS[at] ?? ['', '']
  try {
    const alone = FIELDS.map((_, other) => (other === at ? field : '*')).join(' ')
    patternOf(alone, 'UTC')
  } catch (cause) {
    throw invalid(`field ${at + 1} (${name}), "${field}", is not valid: ${reasonOf(cause)}; expected ${range}`, cause)
  }
}
const reasonOf = (error: unknown): string =>
  messageOf(error)
    .replace(/^CronPattern: /, '')
    .replace(/\.$/, '')
const invalid = (why: string, cause?: unknown): Refusal => new Refusal('invalid_request', `cron: ${why}`, { cause })

function patternOf(expression: string, zone: string): Cron {
  const key = `${zone}\n${expression}`
  const known = patterns.get(key)
  if (known) return known
  const pattern = new Cron(expression, { timezone: zone, mode: '5-part', paused: true })
  if (patterns.size >= MAX_CACHED) patterns.clear()
  patterns.set(key, pattern)
  return pattern
}

function isNearChange(zone: string, at: number): boolean {
  if (zone === 'UTC') return false
  return offsetAt(zone, at - AROUND_CHANGE_MS) !== offsetAt(zone, at + AROUND_CHANGE_MS)
}
const offsetAt = (zone: string, at: number): string | undefined =>
  offsetFormat(zone)
    .formatToParts(at)
    .find(({ type }) => type === 'timeZoneName')?.value

function offsetFormat(zone: string): Intl.DateTimeFormat {
  let format = offsets.get(zone)
  if (!format) {
    format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' })
    offsets.set(zone, format)
  }
  return format
}
