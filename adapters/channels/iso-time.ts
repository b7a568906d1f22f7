/** The largest time that a date can have. */
const MAX_MS = 8_640_000_000_000_000

/**
 * A time of the platform, in milliseconds, as ISO 8601 UTC. Whoever runs a server of a federation chooses any number:
 * one that is no date becomes 1970, as a message that throws is delivered again for ever.
 */
export function isoTime(ms: number): string {
  return new Date(Math.abs(ms) <= MAX_MS ? ms : 0).toISOString()
}
