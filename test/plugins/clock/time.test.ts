import { expect, it } from 'vitest'
import { readTime } from '../../../plugins/clock/time.ts'

const moment = new Date('2026-01-31T23:30:05.250Z')

it.each([
  ['UTC', '2026-01-31T23:30:05+00:00', 'Saturday'],
  ['Europe/Berlin', '2026-02-01T00:30:05+01:00', 'Sunday'],
  ['Asia/Kolkata', '2026-02-01T05:00:05+05:30', 'Sunday'],
  ['America/St_Johns', '2026-01-31T20:00:05-03:30', 'Saturday'],
])('the wall in %s says %s', (timezone, local, weekday) => {
  const reading = readTime(moment, timezone)
  expect(reading).toEqual({ utc: '2026-01-31T23:30:05.250Z', local, timezone, weekday })
  expect(new Date(reading.local).getTime()).toBe(Math.floor(moment.getTime() / 1000) * 1000)
})

it('summer time is told by the date', () => {
  expect(readTime(new Date('2026-07-01T12:00:00Z'), 'Europe/Berlin').local).toBe('2026-07-01T14:00:00+02:00')
})

it.each(['Mars/Olympus', '', 'a b', '../etc'])('"%s" is refused as a time zone', (timezone) => {
  expect(() => readTime(moment, timezone)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
})
