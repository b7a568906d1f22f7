import { readFileSync } from 'node:fs'
import { extname } from 'node:path'

const MAX_CELLS = 5_000_000
const MAX_COLUMNS = 1000
const missing = new Set(['', 'na', 'n/a', '#n/a', 'null', 'nan', 'none'])

/**
 * A table: names of columns, rows of cells (texts, numbers, truth values, `null` where a cell is missing), and what
 * was odd about the file. Throws an error whose message is for the caller.
 */
export function readTable({ path, delimiter, decimal = '.' }) {
  const text = readText(path)
  const kind = extname(path).toLowerCase()
  if (kind === '.json') return fromObjects(parseJson(text, 'the file'))
  if (kind === '.jsonl' || kind === '.ndjson') return fromObjects(parseLines(text))
  if (kind !== '.csv' && kind !== '.tsv' && kind !== '.txt')
    throw new Error(`"${kind || 'no ending'}" is no table this tool reads: .csv, .tsv, .json, .jsonl, .ndjson`)
  const sign = delimiter ?? (kind === '.tsv' ? '\t' : guessDelimiter(text))
  return fromLines(parseDelimited(text, sign), sign, decimal)
}

function readText(path) {
  const bytes = readFileSync(path)
  if (bytes.includes(0)) throw new Error('the file is no UTF-8 text: convert UTF-16 or a spreadsheet to CSV first')
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new Error('the file is no UTF-8 text: convert it first, such as with iconv -f latin1 -t utf-8', { cause })
  }
}

function parseJson(text, what) {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Error(`${what} is no JSON: ${cause.message}`, { cause })
  }
}
function parseLines(text) {
  return text.split('\n').flatMap((line, at) => (line.trim() === '' ? [] : [parseJson(line, `line ${at + 1}`)]))
}

function fromObjects(value) {
  const list = Array.isArray(value) ? value : Object.values(value ?? {}).find(Array.isArray)
  if (!list) throw new Error('the JSON holds no list of rows')
  const isObject = (row) => row !== null && typeof row === 'object' && !Array.isArray(row)
  const odd = list.findIndex((row) => !isObject(row))
  if (odd !== -1) throw new Error(`row ${odd + 1} is no object`)
  const columns = [...new Set(list.flatMap((row) => Object.keys(row)))]
  checkSize(columns.length, list.length)
  const toCell = (cell) =>
    cell === undefined || cell === '' ? null : typeof cell === 'object' && cell !== null ? JSON.stringify(cell) : cell
  const rows = list.map((row) => columns.map((name) => toCell(Object.hasOwn(row, name) ? row[name] : undefined)))
  return { columns, rows, notes: [] }
}

function checkSize(columns, rows) {
  if (columns > MAX_COLUMNS) throw new Error(`the table has ${columns} columns; at most ${MAX_COLUMNS}`)
  if (columns * rows > MAX_CELLS)
    throw new Error(`the table has ${columns * rows} cells; at most ${MAX_CELLS}: take a part of it`)
}

function guessDelimiter(text) {
  const [first = ''] = text.replace(/"[^"]*"/g, '').split('\n', 1)
  const counts = [',', ';', '\t', '|'].map((sign) => [sign, first.split(sign).length])
  return counts.toSorted(([, one], [, other]) => other - one)[0][0]
}

/** Rows of texts, by RFC 4180: a cell in quotes may hold the delimiter, line ends and doubled quotes. */
function parseDelimited(text, delimiter) {
  const rows = []
  let row = []
  const cell = new RegExp(
    `"([^"]*(?:""[^"]*)*)"|([^"\\r\\n${RegExp.escape(delimiter)}][^\\r\\n${RegExp.escape(delimiter)}]*)?`,
    'y',
  )
  for (let at = 0; at < text.length;) {
    cell.lastIndex = at
    const [whole, quoted, plain = ''] = cell.exec(text)
    at += whole.length
    const next = text[at]
    if (quoted === undefined && next === '"')
      throw new Error(`row ${rows.length + 1}: a quote is opened and never closed`)
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    if (next === delimiter) {
      at++
      // The last cell of a text that ends with a delimiter.
      if (at === text.length) row.push('')
      continue
    }
    if (next !== undefined && next !== '\r' && next !== '\n')
      throw new Error(`row ${rows.length + 1}: text follows a closing quote: double the quotes in a cell`)
    at += next === '\r' && text[at + 1] === '\n' ? 2 : 1
    if (row.length > 1 || row[0] !== '') rows.push(row)
    row = []
  }
  if (row.length > 0) rows.push(row)
  return rows
}

function fromLines([head, ...lines], delimiter, decimal) {
  if (!head) throw new Error('the file is empty')
  checkSize(head.length, lines.length)
  const notes = []
  const columns = nameColumns(head, notes)
  const ragged = lines.flatMap((line, at) => (line.length === head.length ? [] : [at + 2]))
  if (ragged.length > 0)
    notes.push(
      `${ragged.length} rows have more or fewer cells than the head, first row ${ragged[0]}: check delimiter and quotes`,
    )
  if (head.length === 1) notes.push(`there is one column only: is ${JSON.stringify(delimiter)} the delimiter?`)
  const rows = lines.map((line) => columns.map((_, at) => toCell(line[at], decimal)))
  return { columns, rows, notes }
}

function nameColumns(head, notes) {
  const names = []
  for (const [at, cell] of head.entries()) {
    const wanted = cell.trim() || `column_${at + 1}`
    let name = wanted
    for (let count = 2; names.includes(name); count++) name = `${wanted}_${count}`
    if (name !== wanted) notes.push(`there is more than one column "${wanted}": the next is "${name}"`)
    names.push(name)
  }
  return names
}

const number = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/
const grouped = /^[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?$/
function toCell(text = '', decimal = '.') {
  const cell = text.trim()
  if (missing.has(cell.toLowerCase())) return null
  const swapped = decimal === ',' ? cell.replace(/[.,]/g, (sign) => (sign === '.' ? ',' : '.')) : cell
  const plain = grouped.test(swapped) ? swapped.replaceAll(',', '') : swapped
  // Numbers with a leading zero are codes.
  if (number.test(plain) && !/^[+-]?0\d/.test(plain) && !/^\d{16,}$/.test(plain)) return Number(plain)
  return cell
}
