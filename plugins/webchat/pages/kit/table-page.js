import { call, callFor } from './api.js'
import { attempt, openDialog } from './dialogs.js'
import { byId, element, replace, time } from './elements.js'
import { livePage } from './live-page.js'
import { table } from './tables.js'

// A page that its plugin only declares: it reaches the routes of that plugin and no others.

const POLL_MS = 10_000
const [, , plugin, path] = location.pathname.split('/')
let page

const refresh = livePage({
  content: [byId('page')],
  submit: 'Show the page',
  async load() {
    page ??= await call('GET', `/api/pages/${plugin}/${path}`)
    draw(rowsOf(await callFor(plugin, { method: 'GET', path: page.table.route })))
  },
  words: [plugin],
  everyMs: POLL_MS,
})

function rowsOf(answer) {
  const { route, rows } = page.table
  const found = rows === undefined ? answer : answer?.[rows]
  if (!Array.isArray(found)) throw new Error(`The answer of ${route} has no list${rows ? ` in “${rows}”` : ''}.`)
  return found
}

function draw(rows) {
  const { columns, empty = 'There is nothing yet.' } = page.table
  const ofRows = page.actions.filter(isOfRow)
  const cells = columns.map(({ field, title }) => ({ title, cell: (row) => shown(row[field]) }))
  if (ofRows.length > 0)
    cells.push({
      title: 'Actions',
      cell: (row) => element('div', { className: 'buttons' }, ...ofRows.map((action) => button(action, row))),
    })
  const general = page.actions.filter((action) => !isOfRow(action)).map((action) => button(action))
  replace(
    byId('page'),
    general.length > 0 && element('div', { className: 'buttons' }, ...general),
    table({ caption: page.title, columns: cells, rows, empty }),
  )
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/
const PARAMETER = /:([A-Za-z_]\w*)/g
const isOfRow = ({ route }) => route.includes('/:')
const textOf = (value) => (typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? ''))
const shown = (value) => (TIME.test(value) ? time(value) : textOf(value))
const nameOf = (row) => textOf(row[page.table.columns[0].field])

function button(action, row) {
  const { title } = action
  const name = row && `${title}: ${nameOf(row)}`
  const onclick = () =>
    action.fields.length > 0 || action.dangerous ? ask(action, row) : attempt(() => run(action, row))
  return element('button', { type: 'button', 'aria-label': name, 'data-focus': name ?? title, onclick }, title)
}

function ask(action, row) {
  const { title, fields, dangerous } = action
  const inputs = fields.map(({ name, required }) => element('input', { id: `field-${name}`, name, required }))
  const labelled = fields.map(({ name, title: label }, at) =>
    element('div', { className: 'field' }, element('label', { for: `field-${name}` }, label), inputs[at]),
  )
  openDialog({
    title,
    content: [row && element('p', {}, nameOf(row)), ...labelled],
    confirm: title,
    isDangerous: dangerous,
    async submit() {
      const empty = fields.find(({ required }, at) => required && inputs[at].value.trim() === '')
      if (empty) throw new Error(`“${empty.title}” is needed.`)
      await run(action, row, Object.fromEntries(inputs.map(({ name, value }) => [name, value])))
    },
  })
}

/** What is left empty is not sent. */
async function run({ method, route }, row, values = {}) {
  const target = route.replaceAll(PARAMETER, (_, field) => encodeURIComponent(textOf(row[field])))
  const body = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''))
  await callFor(plugin, { method, path: target, body: method === 'DELETE' ? undefined : body })
  await refresh()
}

void refresh()
