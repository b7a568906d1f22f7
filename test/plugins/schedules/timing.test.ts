import { describe, expect, it } from 'vitest'
import { checkTiming, dueSlots, nextSlot } from '../../../plugins/schedules/timing/timing.ts'
import type { Timing } from '../../../plugins/schedules/timing/timing.ts'

const cron = (expr: string, tz = 'UTC'): Timing => ({ kind: 'cron', expr, tz })
const at = (iso: string): number => Date.parse(iso)
const iso = (ms: number | undefined): string | undefined => (ms === undefined ? undefined : new Date(ms).toISOString())
/** The next slots after a moment, as hours and minutes of UTC. */
function slots(timing: Timing, from: string, count: number): string[] {
  const found: string[] = []
  let next = nextSlot(timing, at(from))
  while (next !== undefined && found.length < count) {
    found.push(new Date(next).toISOString().slice(5, 16))
    next = nextSlot(timing, next)
  }
  return found
}

describe('the night in which clocks are changed', () => {
  it.each([
    // A time that the night does not have comes when the skipped hour is over.
    ['30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', ['03-29T01:00', '03-30T00:30']],
    ['30 2 * * *', 'America/New_York', '2026-03-07T12:00Z', ['03-08T07:00', '03-09T06:30']],
    ['0 9 * * *', 'Europe/Berlin', '2026-03-28T07:30Z', ['03-28T08:00', '03-29T07:00']],
    // A time that it has twice counts once, the first time.
    ['30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', ['10-25T00:30', '10-26T01:30']],
    ['30 1 * * *', 'America/New_York', '2026-10-31T12:00Z', ['11-01T05:30', '11-02T06:30']],
    // Intervals go on in real time.
    ['30 * * * *', 'Europe/Berlin', '2026-03-29T00:00Z', ['03-29T00:30', '03-29T01:30', '03-29T02:30']],
    [
      '*/30 * * * *',
      'Europe/Berlin',
      '2026-10-25T00:10Z',
      ['10-25T00:30', '10-25T01:00', '10-25T01:30', '10-25T02:00'],
    ],
    ['*/30 * * * *', 'America/New_York', '2026-11-01T05:10Z', ['11-01T05:30', '11-01T06:00', '11-01T06:30']],
    // A zone that shifts by half an hour only.
    ['15 2 * * *', 'Australia/Lord_Howe', '2026-10-03T00:00Z', ['10-03T15:30', '10-04T15:15']],
    ['45 1 * * *', 'Australia/Lord_Howe', '2026-04-04T00:00Z', ['04-04T14:45', '04-05T15:15']],
    // One whose offset has three quarters of an hour, and one where the night is that of Friday to Saturday.
    ['30 3 * * *', 'Pacific/Chatham', '2026-04-03T15:00Z', ['04-04T13:45', '04-05T14:45']],
    ['30 0 * * *', 'Africa/Cairo', '2026-04-22T22:30Z', ['04-23T22:00', '04-24T21:30']],
    ['30 23 * * *', 'Africa/Cairo', '2026-10-28T21:00Z', ['10-29T20:30', '10-30T21:30']],
    // A zone that never changes.
    ['30 2 * * *', 'Asia/Kolkata', '2026-03-28T12:00Z', ['03-28T21:00', '03-29T21:00']],
    ['30 2 * * *', 'UTC', '2026-10-24T12:00Z', ['10-25T02:30', '10-26T02:30']],
  ])('%s in %s after %s', (expr, tz, from, expected) => {
    expect(slots(cron(expr, tz), from, expected.length)).toEqual(expected)
  })

  it('has the same slots from wherever it is asked', () => {
    const daily = cron('30 2 * * *', 'Europe/Berlin')
    for (let from = at('2026-10-25T00:30Z'); from < at('2026-10-26T01:30Z'); from += 600_000)
      expect(iso(nextSlot(daily, from))).toBe('2026-10-26T01:30:00.000Z')
  })
})

describe('a timing that is refused', () => {
  const now = at('2026-01-01T00:00Z')
  it.each([
    [cron('61 * * * *'), 'cron: field 1 (minute), "61", is not valid: Invalid value for minute: 61; expected 0-59'],
    [cron('0 24 * * *'), /^cron: field 2 \(hour\), "24", is not valid: .*expected 0-23$/],
    [cron('0 9 * * FUNDAY'), /^cron: field 5 \(day of the week\), "FUNDAY", is not valid: .*0-7 or SUN-SAT$/],
    [cron('*/0 * * * *'), /^cron: field 1 \(minute\)/],
    [cron('* * * * * *'), /^cron: "\* \* \* \* \* \*" has 6 fields, and a cron expression has five/],
    [cron('@hourly'), /^cron: "@hourly" has 1 field, and a cron expression has five/],
    [cron(''), /^cron: "" has 0 fields/],
    [cron('@daily'), /has 1 field,/],
    [cron('0 0 30 2 *'), /^cron: "0 0 30 2 \*" never occurs/],
    [cron('0 9 * * *', 'Mars/Phobos'), /^tz: there is no time zone "Mars\/Phobos"/],
    [{ kind: 'every', every_secs: 59, from: now } as const, /^schedule.every_secs: .*60 to 86400/],
    [{ kind: 'at', at: now } as const, 'schedule.at: this time is in the past'],
    [{ kind: 'at', at: at('2027-02-01T00:00Z') } as const, /more than a year ahead/],
  ])('%j', (timing, message) => {
    expect(() => checkTiming(timing, now)).toThrow(message)
  })

  it('names of months and days, steps, lists and a leap day are fine', () => {
    for (const expr of ['0 9 * JAN MON-FRI', '*/15 8-18/2 1,15 * *', '0 0 29 2 *', '0 9 * * 7'])
      expect(() => checkTiming(cron(expr), now)).not.toThrow()
  })
})

describe('the slots that are due', () => {
  const every = { kind: 'every', every_secs: 600, from: at('2026-01-01T00:00Z') } as const
  it.each([
    [cron('*/10 * * * *'), '2026-01-01T00:10Z', '2026-01-01T00:30Z', 9, [10, 20, 30], false],
    [every, '2026-01-01T00:10Z', '2026-01-01T00:35Z', 9, [10, 20, 30], false],
    [cron('*/10 * * * *'), '2025-01-01T00:10Z', '2026-01-01T00:30Z', 3, [10, 20, 30], true],
    [every, '2026-01-01T00:10Z', '2026-01-01T03:00Z', 2, [170, 180], true],
    [cron('*/10 * * * *'), '2026-01-01T00:40Z', '2026-01-01T00:30Z', 3, [], false],
    [{ kind: 'at', at: at('2026-01-01T00:10Z') } as const, '2026-01-01T00:10Z', '2026-05-01T00:00Z', 3, [10], false],
  ])('%j from %s until %s', (timing, first, until, max, minutes, isCut) => {
    const found = dueSlots(timing, at(first), at(until), max)
    expect(found.slots.map((slot) => (slot - at('2026-01-01T00:00Z')) / 60_000)).toEqual(minutes)
    expect(found.isCut).toBe(isCut)
  })
})
