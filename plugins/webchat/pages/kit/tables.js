import { element } from './elements.js'

/**
 * A table that scrolls inside of its place; on a phone each row is a list of its cells with their titles, so all parts say
 * what they are. `columns` are `{ title, cell, isNumber }`, where `cell(row)` is a text or an element; `empty` is what
 * stands there without rows, and should say what to do.
 */
export function table({ caption, columns, rows, empty }) {
  if (rows.length === 0) return element('p', { className: 'hint' }, empty)
  const heading = ({ title, isNumber }) =>
    element('th', { scope: 'col', role: 'columnheader', className: isNumber && 'number' }, title)
  const cell = (row, { title, cell: of, isNumber }) =>
    element('td', { role: 'cell', 'data-title': title, className: isNumber && 'number' }, element('div', {}, of(row)))
  const line = (cells) => element('tr', { role: 'row' }, cells)
  return element(
    'div',
    { className: 'table', role: 'region', 'aria-label': caption, tabindex: '0' },
    element(
      'table',
      { role: 'table' },
      element('caption', { className: 'hidden' }, caption),
      element('thead', { role: 'rowgroup' }, line(columns.map(heading))),
      element(
        'tbody',
        { role: 'rowgroup' },
        rows.map((row) => line(columns.map((column) => cell(row, column)))),
      ),
    ),
  )
}

/** A bar for each of `rows`, which are `{ label, value, text }`, as long as its value is against the largest. */
export function bars(caption, rows) {
  const most = Math.max(0, ...rows.map(({ value }) => value))
  return element(
    'figure',
    { className: 'bars' },
    element('figcaption', {}, caption),
    element(
      'ul',
      {},
      rows.map(({ label, value, text }) => {
        const bar = element('span', { className: 'bar', 'aria-hidden': 'true' })
        // What is not nothing is seen.
        bar.style.inlineSize = value === 0 ? '0' : `max(2px, ${(100 * value) / most}%)`
        return element('li', {}, element('span', {}, label), element('span', {}, bar), element('span', {}, text))
      }),
    ),
  )
}

/** US dollars: to the cent, or as exactly as it takes for a small sum. */
export function money(usd) {
  const small = usd > 0 && usd < 0.01
  const digits = small ? { maximumSignificantDigits: 2 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 }
  return new Intl.NumberFormat(undefined, { style: 'currency', currency: 'USD', ...digits }).format(usd)
}
/** A number with its thousands apart. */
export const count = (value) => value.toLocaleString()
/** A number of bytes, rounded. */
export function bytes(value) {
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  const power = value < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(value) / 3))
  return `${(value / 1000 ** power).toLocaleString(undefined, { maximumFractionDigits: power === 0 ? 0 : 1 })} ${units[power]}`
}
