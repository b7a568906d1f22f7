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

/** Formats by time zone: making one costs a hundred times as much as using it. */
const formats = new Map<string, Intl.DateTimeFormat>()
const MAX_FORMATS = 100
const MAX_AGE_MS = 1_000
let local: { readonly atMs: number; readonly zone: string } | undefined

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

/** The zone of the process; it may change while it runs, which is noticed within a second. */
export function localZone(now: Date): string {
  const age = now.getTime() - (local?.atMs ?? 0)
  if (!local || age < 0 || age >= MAX_AGE_MS)
    local = { atMs: now.getTime(), zone: Intl.DateTimeFormat().resolvedOptions().timeZone }
  return local.zone
}

function partsOf(now: Date, timeZone: string): (name: Intl.DateTimeFormatPartTypes) => string {
  const parts = formatOf(timeZone).formatToParts(now)
  return (name) => parts.find((part) => part.type === name)?.value ?? ''
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone)
  if (known) return known
  try {
    const format = new Intl.DateTimeFormat('en-US', {
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
    })
    if (formats.size >= MAX_FORMATS) formats.clear()
    formats.set(timeZone, format)
    return format
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new Refusal(
      'invalid_request',
      `tz: "${timeZone}" is not a known time zone; use an IANA name such as Europe/Berlin`,
      { cause: error },
    )
  }
}
