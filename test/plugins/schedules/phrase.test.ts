import { expect, it } from 'vitest'
import { readPhrase } from '../../../plugins/schedules/timing/phrase.ts'

it.each([
  ['every 10 minutes', { kind: 'every', every_secs: 600 }],
  ['Every hour', '0 * * * *'],
  ['every 2 hours', { kind: 'every', every_secs: 7_200 }],
  ['every day', { kind: 'every', every_secs: 86_400 }],
  ['daily at 9', '0 9 * * *'],
  ['every day at 9:30 pm', '30 21 * * *'],
  ['daily at 12 am', '0 0 * * *'],
  ['daily at noon', '0 12 * * *'],
  ['weekdays at 18:30', '30 18 * * MON-FRI'],
  ['every weekday at 7', '0 7 * * MON-FRI'],
  ['weekends at 10', '0 10 * * SAT,SUN'],
  ['every Monday at 9', '0 9 * * MON'],
  ['mondays and thursdays at 9:15 am', '15 9 * * MON,THU'],
  ['tue, wed and sat at midnight', '0 0 * * TUE,WED,SAT'],
  ['monthly on the 1st at 8:00', '0 8 1 * *'],
  ['30 9 * * MON-FRI', '30 9 * * MON-FRI'],
  ['*/5  * * * *', '*/5 * * * *'],
])('"%s" is understood', (phrase, expected) => {
  expect(readPhrase(phrase)).toEqual(expected)
})

it.each([
  'tomorrow',
  'daily at 25',
  'daily at 9:75',
  'daily at 13 pm',
  'every 2 days',
  'every 0 minutes',
  'moondays at 9',
  'every now and then',
  'monthly on the 32nd at 9',
  '',
  'x'.repeat(500),
])('"%s" is refused with examples', (phrase) => {
  expect(() => readPhrase(phrase)).toThrow(/is not understood; use "every 10 minutes".*cron expression/)
})
