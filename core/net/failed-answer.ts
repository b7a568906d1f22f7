import { UpstreamFailure } from '../errors/error.ts'
import type { OutboundResponse } from './fetch.ts'
import { readJson } from '../schema/nesting.ts'

const MAX_ERROR_BYTES = 65_536
const MAX_MESSAGE_CHARS = 300

/**
 * The body of an answer of 400 and over, cut to what an explanation can need. A body that breaks off is as long as it
 * got.
 */
export async function readFailedBody(response: OutboundResponse): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const chunk of response.chunks()) {
      text += decoder.decode(chunk, { stream: true })
      if (text.length >= MAX_ERROR_BYTES) break
    }
  } catch (error) {
    // The status says enough; what was read of the reason is shown.
    if (!(error instanceof UpstreamFailure)) throw error
  }
  return text
}

/** A failed body as JSON, not yet checked; `undefined` when it is a page or nothing, whose text is shown as it is. */
export function readFailedJson(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return undefined /* said above */
  }
}

/**
 * Seconds to wait, from `Retry-After` as seconds or as an HTTP date, or from the `retry-after-ms` some vendors add.
 * `now` is in ms since 1970.
 */
export function readRetryAfter(header: string | undefined, ms: string | undefined, now: number): number | undefined {
  if (ms !== undefined && /^\d+(\.\d+)?$/.test(ms.trim())) return Number(ms) / 1000
  if (header === undefined) return undefined
  if (/^\s*\d+(\.\d+)?\s*$/.test(header)) return Number(header)
  // A date names its month; without one the parser would make a year of any number.
  const at = /[a-z]{3}/i.test(header) ? Date.parse(header) : NaN
  return Number.isNaN(at) ? undefined : Math.max(0, (at - now) / 1000)
}

/** The words of a message or a page, without its marks, short enough to show. */
export function shortened(text: string): string {
  const plain = text
    .slice(0, 4000)
    .replace(/<(script|style)[^>]*>[^<]*/gi, ' ')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  return plain.length > MAX_MESSAGE_CHARS ? `${plain.slice(0, MAX_MESSAGE_CHARS)}…` : plain
}
