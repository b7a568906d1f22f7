import { readOwnJson } from 'svc/internal'

const TITLE_CHARS = 80

/** A title from the beginning of a stored message: text comes before pictures, so the first block has it. */
export function titleOf(blocks: string): string {
  const quoted = /^\[\{"type":"text","text":"((?:[^"\\]|\\["\\/bfnrt]|\\u[\da-fA-F]{4})*)/.exec(blocks)?.[1]
  if (quoted === undefined) return ''
  const parsed = readOwnJson(`"${quoted}"`)
  const text = String(parsed)
    .toWellFormed()
    .replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, ' ')
    .trim()
  return text.length <= TITLE_CHARS
    ? text
    : `${text
        .slice(0, TITLE_CHARS - 1)
        .toWellFormed()
        .trimEnd()}…`
}
