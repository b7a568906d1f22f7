import type { ChannelCapabilities } from 'svc/channels'

export type LengthUnit = ChannelCapabilities['lengthUnit']

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** The length of a text as the platform counts it. */
export function lengthOf(text: string, unit: LengthUnit): number {
  switch (unit) {
    case 'utf16':
      return text.length
    case 'bytes':
      return Buffer.byteLength(text)
    case 'characters':
      return countCodePoints(text)
    case 'graphemes':
      return countGraphemes(text)
  }
}

/** Whether a text is longer than this. Reads no more of it than that takes. */
export function isLonger(text: string, unit: LengthUnit, max: number): boolean {
  if (unit !== 'bytes' && text.length <= max) return false
  if (unit === 'utf16' || unit === 'bytes') return lengthOf(text, unit) > max
  let count = 0
  for (const _ of unit === 'characters' ? text : graphemesOf(text)) if (++count > max) return true
  return false
}

/** The segmenter reads all of a text before it yields the first character. */
const WINDOW_CHARS = 256

/** Pieces that are never cut: what a reader sees as one character. Takes time for those that are taken only. */
export function* graphemesOf(text: string): Iterable<string> {
  let size = WINDOW_CHARS
  for (let at = 0; at < text.length;) {
    const found = Array.from(segmenter.segment(text.slice(at, at + size)), ({ segment }) => segment)
    // The last one may go on behind the window.
    const whole = at + size < text.length ? found.slice(0, -1) : found
    yield* whole
    at += whole.reduce((sum, { length }) => sum + length, 0)
    size = whole.length > 0 ? WINDOW_CHARS : size * 2
  }
}

function countCodePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}
/** Calling the segmenter costs more than this, and most texts have nothing to join. */
const ONE_EACH = /^[\x20-\x7e\n]*$/

function countGraphemes(text: string): number {
  if (ONE_EACH.test(text)) return text.length
  let count = 0
  for (const _ of segmenter.segment(text)) count++
  return count
}
