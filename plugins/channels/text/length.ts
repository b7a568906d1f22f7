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

/** Pieces that are never cut: what a reader sees as one character. */
export function* graphemesOf(text: string): Iterable<string> {
  for (const { segment } of segmenter.segment(text)) yield segment
}

function countCodePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}
function countGraphemes(text: string): number {
  let count = 0
  for (const _ of segmenter.segment(text)) count++
  return count
}
