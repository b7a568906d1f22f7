import { escapeControls } from '../log/text.ts'

/** A table with a heading, its cells safe for a terminal; a wide character takes two columns. */
export function renderTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [headings, ...rows].map((row) => row.map((cell) => escapeControls(cell)))
  const widths = headings.map((_, column) => Math.max(...lines.map((row) => columnsOf(row[column] ?? ''))))
  return lines
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - columnsOf(cell)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** East Asian scripts, fullwidth forms and emoji. */
const WIDE =
  /[\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uA960-\uA97C\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{1F300}-\u{1F3FA}\u{1F400}-\u{1FAFF}\u{20000}-\u{3FFFD}]/u
/** Marks, joiners and skin tones change what stands before them. */
const NO_WIDTH = /[\p{Mn}\p{Me}\p{Cf}\u{1F3FB}-\u{1F3FF}]/u

/** Columns of a terminal. The package that knows every sequence of emoji takes longer to load than most commands run. */
function columnsOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length
  let columns = 0
  for (const character of text) columns += NO_WIDTH.test(character) ? 0 : WIDE.test(character) ? 2 : 1
  return columns
}
