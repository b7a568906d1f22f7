import { deviation, largest, mean, quantile, round, smallest, sortNumbers } from './numbers.mjs'

const MAX_TOP = 5
const MAX_SHOWN = 60
/** Beginning of an ISO date or date-time. */
export const isoDate = /^(\d{4})-(\d{2})(?:-(\d{2}))?(?:[T ]\d{2}:\d{2}|$)/
const otherDate = /^\d{1,2}([./-])\d{1,2}\1\d{2,4}$/
const separated = /^[^\d\s-]{0,3}\s?-?\d{1,3}(?:[.,' ]\d{3})*(?:[.,]\d+)?\s?[^\d\s]{0,3}$/

function typeOf(values) {
  const of = (test) => values.every(test)
  if (values.length === 0) return 'empty'
  if (of((value) => typeof value === 'number')) return of(Number.isInteger) ? 'integer' : 'number'
  if (of((value) => typeof value === 'boolean' || /^(?:true|false|yes|no)$/i.test(value))) return 'boolean'
  if (of((value) => isoDate.test(value))) return 'date'
  return values.some((value) => typeof value === 'number') ? 'mixed' : 'text'
}

const cut = (value) => (typeof value === 'string' && value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value)
const percent = (part, all) => (all === 0 ? 0 : round((100 * part) / all))

function describeNumbers(values) {
  const sorted = sortNumbers(values)
  const [q1, median, q3] = [0.25, 0.5, 0.75].map((share) => quantile(sorted, share))
  const reach = 1.5 * (q3 - q1)
  return {
    min: sorted[0],
    q1: round(q1),
    median: round(median),
    q3: round(q3),
    max: sorted.at(-1),
    mean: round(mean(values)),
    sd: round(deviation(values)),
    zeros: values.filter((value) => value === 0).length,
    negative: values.filter((value) => value < 0).length,
    outliers: values.filter((value) => value < q1 - reach || value > q3 + reach).length,
  }
}

function describeTexts(counts) {
  const top = [...counts].toSorted(([, one], [, other]) => other - one).slice(0, MAX_TOP)
  return { top: top.map(([value, count]) => ({ value: cut(value), count })) }
}

/** What somebody should look at before computing with a column. */
function doubts({ name, type, values, counts, rows }) {
  const texts = values.filter((value) => typeof value === 'string')
  const folded = new Set([...counts.keys()].map((value) => String(value).trim().toLowerCase()))
  return [
    type === 'mixed' && `${texts.length} of ${values.length} are no numbers, such as ${JSON.stringify(cut(texts[0]))}`,
    texts.length > 0 &&
      texts.every((value) => separated.test(value) && /\D/.test(value)) &&
      type === 'text' &&
      'looks like numbers with signs: say the decimal sign, or clean it',
    type === 'text' &&
      texts.every((value) => otherDate.test(value)) &&
      'looks like dates that are not ISO: day or month first?',
    folded.size < counts.size && `${counts.size - folded.size} values differ only in case or blanks`,
    counts.size === 1 && rows > 1 && 'has one value only',
    counts.size === rows &&
      rows > 1 &&
      values.length === rows &&
      type !== 'number' &&
      'is different in each row: perhaps a key',
  ]
    .filter((doubt) => doubt !== false)
    .map((doubt) => `${name}: ${doubt}`)
}

/** Of each column that is wanted, or all of them. */
export function profile({ columns, rows, notes }, wanted) {
  const found = [...notes]
  const described = wanted.map((name) => {
    const at = columns.indexOf(name)
    const values = rows.flatMap((row) => (row[at] === null ? [] : [row[at]]))
    const type = typeOf(values)
    const counts = new Map()
    for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1)
    found.push(...doubts({ name, type, values, counts, rows: rows.length }))
    return {
      name,
      type,
      missing: rows.length - values.length,
      missing_percent: percent(rows.length - values.length, rows.length),
      distinct: counts.size,
      ...(type === 'number' || type === 'integer'
        ? describeNumbers(values)
        : type === 'date'
          ? { earliest: smallest(values), latest: largest(values) }
          : describeTexts(counts)),
    }
  })
  const distinct = new Set(rows.map((row) => JSON.stringify(row))).size
  return { rows: rows.length, double_rows: rows.length - distinct, columns: described, notes: found.slice(0, 50) }
}
