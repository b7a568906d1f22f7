import type { Tokens } from 'marked'
import stringWidth from 'string-width'
import { decodeReferences } from './clean.ts'

/** Wider than this, the rows of a table are written one cell below the other. */
const MAX_WIDTH = 60

/** A table as text in a fixed-width font. */
export function tableText({ header, rows }: Tokens.Table): string {
  const cells = [header, ...rows].map((row) => row.map((cell) => decodeReferences(plain(cell.text))))
  const widths = header.map((_, column) => Math.max(...cells.map((row) => stringWidth(row[column] ?? ''))))
  const total = widths.reduce((sum, width) => sum + width + 3, 0)
  return total > MAX_WIDTH ? asRecords(cells) : asGrid(cells, widths)
}

function asGrid(cells: readonly (readonly string[])[], widths: readonly number[]): string {
  const lines = cells.map((row) =>
    widths
      .map((width, column) => pad(row[column] ?? '', width))
      .join(' | ')
      .trimEnd(),
  )
  const rule = widths.map((width) => '-'.repeat(width)).join('-+-')
  return [lines[0], rule, ...lines.slice(1)].join('\n')
}

function asRecords([header = [], ...rows]: readonly (readonly string[])[]): string {
  return rows.map((row) => header.map((title, column) => `${title}: ${row[column] ?? ''}`).join('\n')).join('\n\n')
}

function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - stringWidth(text)))
}

/** The text of a cell without the signs of emphasis and code. */
function plain(text: string): string {
  return text.replaceAll(/[*_`~]{1,3}(?=\S)|(?<=\S)[*_`~]{1,3}/g, (signs, at: number) =>
    /\w/.test(text[at - 1] ?? '') && /\w/.test(text[at + signs.length] ?? '') ? signs : '',
  )
}
