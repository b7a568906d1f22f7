import { Refusal } from 'svc/sdk'

/** What a phrase means, as the API takes it. */
export type PhraseSchedule = string | { readonly kind: 'every'; readonly every_secs: number }

const DAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'] as const
const UNITS: Readonly<Record<string, number>> = { minute: 60, min: 60, hour: 3_600, day: 86_400 }
const MAX_PHRASE = 200
const EXAMPLES =
  '"every 10 minutes", "hourly", "daily at 9", "weekdays at 18:30", "mondays and thursdays at 9:15 am", ' +
  '"monthly on the 1st at 8:00", or a cron expression of five fields such as "30 9 * * MON-FRI"'

/**
 * A cron expression, or one of a few English phrases. Throws `invalid_request` with examples for anything else: a guess
 * would run at the wrong time for weeks.
 */
export function readPhrase(text: string): PhraseSchedule {
  const phrase = text.trim().replaceAll(/\s+/g, ' ')
  if (phrase.length > MAX_PHRASE) throw notUnderstood(`${phrase.slice(0, 60)}…`)
  if (/^\S+( \S+){4}$/.test(phrase) && /^[\d*]/.test(phrase)) return phrase
  const words = phrase.toLowerCase().replace(/[.!]$/, '')
  return readInterval(words) ?? readDays(words) ?? readMonthly(words) ?? refuse(phrase)
}
const notUnderstood = (phrase: string): Refusal =>
  new Refusal('invalid_request', `schedule: "${phrase}" is not understood; use ${EXAMPLES}`)
function refuse(phrase: string): never {
  throw notUnderstood(phrase)
}

function readInterval(words: string): PhraseSchedule | undefined {
  if (words === 'hourly' || words === 'every hour') return '0 * * * *'
  const [, count = '1', unit = ''] = /^every (?:(\d{1,5}) )?(minute|min|hour|day)s?$/.exec(words) ?? []
  const secs = Number(count) * (UNITS[unit] ?? 0)
  return secs > 0 && secs <= 86_400 ? { kind: 'every', every_secs: secs } : undefined
}

function readDays(words: string): string | undefined {
  const [, days = '', at = ''] = /^(.+?) at (.+)$/.exec(words) ?? []
  const time = readTime(at)
  const on = readDayNames(days.replace(/^(?:every|each|on) /, ''))
  return time && on ? `${time} * * ${on}` : undefined
}
function readDayNames(words: string): string | undefined {
  if (words === 'daily' || words === 'day') return '*'
  if (words === 'weekday' || words === 'weekdays') return 'MON-FRI'
  if (words === 'weekend' || words === 'weekends') return 'SAT,SUN'
  const names = words.split(/(?:, and |,? and |, )/).map((word) => dayOf(word))
  return names.every((name) => name !== undefined) ? names.join(',') : undefined
}
function dayOf(word: string): string | undefined {
  const name = /^(sun|mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?)(?:days?)?$/.exec(word)?.[1]
  return DAYS.find((day) => day.toLowerCase() === name?.slice(0, 3))
}

function readMonthly(words: string): string | undefined {
  const pattern = /^(?:monthly|every month) on the (\d{1,2})(?:st|nd|rd|th)? at (.+)$/
  const [, day = '', at = ''] = pattern.exec(words) ?? []
  const time = readTime(at)
  return time && Number(day) >= 1 && Number(day) <= 31 ? `${time} ${Number(day)} * *` : undefined
}

/** Minute and hour as a cron expression has them. */
function readTime(text: string): string | undefined {
  if (text === 'noon') return '0 12'
  if (text === 'midnight') return '0 0'
  const [, hour = '', minute = '0', half] = /^(\d{1,2})(?:[:.](\d{2}))? ?(am|pm)?$/.exec(text) ?? []
  if (hour === '' || Number(minute) > 59) return undefined
  if (half === undefined) return Number(hour) <= 23 ? `${Number(minute)} ${Number(hour)}` : undefined
  if (Number(hour) < 1 || Number(hour) > 12) return undefined
  return `${Number(minute)} ${(Number(hour) % 12) + (half === 'pm' ? 12 : 0)}`
}
