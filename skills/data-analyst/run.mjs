import { json } from 'node:stream/consumers'
import { deviation, largest, mean, pearson, quantile, ranks, round, smallest, sortNumbers, sum } from './numbers.mjs'
import { isoDate, profile } from './profile.mjs'
import { readTable } from './table.mjs'

const MAX_PAIRS = 100
/** Fewer pairs of values say nothing. */
const MIN_PAIRS = 3

function columnAt({ columns }, name) {
  const at = columns.indexOf(name)
  if (at === -1) throw new Error(`there is no column "${name}"; there are ${columns.slice(0, 30).join(', ')}`)
  return at
}
const isNumber = (value) => typeof value === 'number' && Number.isFinite(value)

const periods = {
  year: ([, year]) => year,
  quarter: ([, year, month]) => `${year}-Q${Math.ceil(Number(month) / 3)}`,
  month: ([, year, month]) => `${year}-${month}`,
  day: ([, year, month, day]) => (day === undefined ? null : `${year}-${month}-${day}`),
}
/** What a row is grouped by: a column, or a period of a column of dates. */
function readKey(table, name) {
  const [, column, period] = table.columns.includes(name) ? [] : (/^(.+):(year|quarter|month|day)$/.exec(name) ?? [])
  if (column === undefined) {
    const at = columnAt(table, name)
    return (row) => row[at]
  }
  const at = columnAt(table, column)
  return (row) => {
    const date = isoDate.exec(String(row[at] ?? ''))
    return date ? periods[period](date) : null
  }
}

const order = (one, other) => (one === other ? 0 : one === null || (other !== null && one < other) ? -1 : 1)
const comparisons = {
  '=': (cell, value) => String(cell) === String(value),
  '!=': (cell, value) => String(cell) !== String(value),
  '<': (cell, value) => cell < value,
  '<=': (cell, value) => cell <= value,
  '>': (cell, value) => cell > value,
  '>=': (cell, value) => cell >= value,
  contains: (cell, value) => String(cell).toLowerCase().includes(String(value).toLowerCase()),
}
/** Whether a row is wanted. Missing cells are neither equal nor different, as in SQL. */
function readFilter(table, { column, is, value }) {
  const at = columnAt(table, column)
  if (is === 'missing') return (row) => row[at] === null
  if (is === 'present') return (row) => row[at] !== null
  if (value === undefined) throw new Error(`where: "${is}" needs a value`)
  const isOrdered = /[<>]/.test(is)
  return (row) => {
    const cell = row[at]
    if (cell === null || (isOrdered && typeof cell !== typeof value)) return false
    return comparisons[is](cell, value)
  }
}

const measures = {
  sum,
  mean,
  median: (values) => quantile(sortNumbers(values), 0.5),
  min: smallest,
  max: largest,
  sd: deviation,
}
function readMeasure(table, { op, column }) {
  if (column === undefined) {
    if (op === 'count') return { name: 'rows', measure: (rows) => rows.length, left: () => 0 }
    throw new Error(`measures: "${op}" needs a column`)
  }
  const at = columnAt(table, column)
  const name = `${op} of ${column}`
  const present = (rows) => rows.flatMap((row) => (row[at] === null ? [] : [row[at]]))
  if (op === 'count') return { name, measure: (rows) => present(rows).length, left: () => 0 }
  if (op === 'distinct') return { name, measure: (rows) => new Set(present(rows)).size, left: () => 0 }
  return {
    name,
    measure(rows) {
      const values = present(rows).filter(isNumber)
      return values.length === 0 ? null : round(measures[op](values))
    },
    left: (rows) => rows.length - present(rows).filter(isNumber).length,
  }
}

function aggregate({ group_by: by = [], where = [], measures: asked, sort = 'measure', limit = 50, ...input }) {
  const table = readTable(input)
  const filters = where.map((each) => readFilter(table, each))
  const keys = by.map((name) => readKey(table, name))
  const found = asked.map((each) => readMeasure(table, each))
  const rows = table.rows.filter((row) => filters.every((filter) => filter(row)))
  const groups = Map.groupBy(rows, (row) => JSON.stringify(keys.map((key) => key(row))))
  const all = [...groups].map(([key, members]) => [...JSON.parse(key), ...found.map(({ measure }) => measure(members))])
  const sorted = all.toSorted((one, other) => {
    if (sort === 'measure' && one[by.length] !== other[by.length]) return -order(one[by.length], other[by.length])
    const at = by.findIndex((_, index) => one[index] !== other[index])
    return at === -1 ? 0 : order(one[at], other[at])
  })
  const left = found.flatMap(({ name, left }) =>
    left(rows) === 0 ? [] : [`${name}: ${left(rows)} of ${rows.length} rows have no number and are left out`],
  )
  return {
    columns: [...by, ...found.map(({ name }) => name)],
    rows: sorted.slice(0, limit),
    groups: groups.size,
    ...(sorted.length > limit && { shown: limit }),
    rows_used: rows.length,
    rows_left_out: table.rows.length - rows.length,
    notes: [...table.notes, ...left],
  }
}

function correlate({ columns: wanted, ...input }) {
  const table = readTable(input)
  const isNumeric = (at) => table.rows.some((row) => isNumber(row[at]))
  const names = wanted ?? table.columns.filter((_, at) => isNumeric(at)).slice(0, 30)
  for (const name of names)
    if (!isNumeric(columnAt(table, name))) throw new Error(`the column "${name}" has no numbers`)
  if (names.length < 2) throw new Error('a correlation needs two columns with numbers')
  const pairs = names.flatMap((one, index) => names.slice(index + 1).map((other) => pair(table, one, other)))
  const known = pairs.filter(({ pearson: value }) => value !== null)
  const strongest = known.toSorted((one, other) => Math.abs(other.spearman) - Math.abs(one.spearman))
  return {
    pairs: strongest.slice(0, MAX_PAIRS),
    total: known.length,
    notes: [
      ...table.notes,
      ...pairs
        .filter(({ pearson: value }) => value === null)
        .map(
          ({ columns, n }) =>
            `${columns.join(' and ')}: ${n < MIN_PAIRS ? `only ${n} rows have both` : 'one of them is constant'}`,
        ),
      'a correlation is no cause',
    ],
  }
}
function pair(table, one, other) {
  const [first, second] = [columnAt(table, one), columnAt(table, other)]
  const rows = table.rows.filter((row) => isNumber(row[first]) && isNumber(row[second]))
  const [ones, others] = [rows.map((row) => row[first]), rows.map((row) => row[second])]
  const isKnown = rows.length >= MIN_PAIRS
  return {
    columns: [one, other],
    n: rows.length,
    pearson: isKnown ? round(pearson(ones, others)) : null,
    spearman: isKnown ? round(pearson(ranks(ones), ranks(others))) : null,
  }
}

function profileFile({ columns: wanted, ...input }) {
  const table = readTable(input)
  for (const name of wanted ?? []) columnAt(table, name)
  return profile(table, wanted ?? table.columns.slice(0, 100))
}

try {
  const { tool, input } = await json(process.stdin)
  const tools = { aggregate, correlate, profile: profileFile }
  console.log(JSON.stringify(tools[tool](input)))
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
