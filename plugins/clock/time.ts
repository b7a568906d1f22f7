import { Refusal } from 'svc/sdk'

export interface TimeReading {
  /** ISO 8601. */
  readonly utc: string
  /** The same moment on the wall of the time zone, ISO 8601 with its offset. */
  readonly local: string
  /** IANA name. */
  readonly timezone: string
  readonly weekday: string
}

/** Throws `invalid_request` for an unknown time zone. */
export function readTime(now: Date, timezone: string): TimeReading {
  const part = partsOf(now, timezone)
  const offset = (part('timeZoneName').replace('GMT', '') || '+00:00').replace('\u2212', '-')
  const date = `${part('year')}-${part('month')}-${part('day')}`
  return {
    utc: now.toISOString(),
    local: `${date}T${part('hour')}:${part('minute')}:${part('second')}${offset}`,
    timezone,
    weekday: part('weekday'),
  }
}

function partsOf(now: Date, timeZone: string): (name: Intl.DateTimeFormatPartTypes) => string {
  try {
    const parts = new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      weekday: 'long',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      timeZoneName: 'longOffset',
    }).formatToParts(now)
    return (name) => parts.find((part) => part.type === name)?.value ?? ''
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new Refusal(
      'invalid_request',
      `tz: "${timeZone}" is not a known time zone; use an IANA name such as Europe/Berlin`,
      { cause: error },
    )
  }
}
