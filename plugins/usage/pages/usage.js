import {
  bars,
  byId,
  call,
  count,
  element,
  facts,
  keepInAddress,
  livePage,
  money,
  replace,
  table,
} from '../../kit/kit.js'

const POLL_MS = 15_000
const MAX_ROWS = 50
const MAX_BARS = 8
const range = byId('last')
keepInAddress(range)
range.addEventListener('change', () => void refresh())
const places = ['sums', 'range', 'days', 'models', 'agents'].map(byId)

const refresh = livePage({
  content: places,
  submit: 'Show the usage',
  async load() {
    const periods = ['hour', 'day', 'week', 'month']
    const [sums, { days }, { models }, { agents }] = await Promise.all([
      Promise.all(periods.map((period) => call('GET', `/api/usage?period=${period}`))),
      call('GET', `/api/usage/daily?days=${range.value}`),
      call('GET', '/api/usage/by-model'),
      call('GET', '/api/usage/agents'),
    ])
    replace(byId('sums'), sums.map(tile))
    const isByWeek = days.length > 31
    const parts = isByWeek ? weeks(days) : days
    // Where nothing costs anything, as with local models, tokens say more.
    const isFree = days.every(({ cost_usd: cost }) => cost === 0)
    replace(
      byId('days'),
      bars(
        `${isFree ? 'Tokens' : 'Cost'} per ${isByWeek ? 'week' : 'day'}`,
        parts.map(({ date, cost_usd: cost, tokens }) => ({
          label: isByWeek ? `From ${day(date)}` : day(date),
          value: isFree ? tokens : cost,
          text: isFree ? count(tokens) : money(cost),
        })),
      ),
    )
    section('models', isFree, 'By model', models, ({ provider, model }) => `${provider}/${model}`)
    section('agents', isFree, 'By agent', agents, ({ name, agent_id: id }) => name || id)
  },
  words: ['usage', 'turn'],
  everyMs: POLL_MS,
})

const TITLES = { hour: 'This hour', day: 'Today', week: 'Last 7 days', month: 'This month' }
function tile({ period, total_cost_usd: cost, total_input_tokens: input, total_output_tokens: output, ...rest }) {
  const { request_count: requests, unpriced_requests: unpriced } = rest
  return element(
    'dl',
    { className: 'tile' },
    ...facts([[TITLES[period], money(cost)]]),
    element('dd', { className: 'hint' }, `${count(input + output)} tokens in ${count(requests)} calls`),
    unpriced > 0 && element('dd', { className: 'hint' }, `${count(unpriced)} calls without a known price`),
  )
}

function section(id, isFree, title, rows, nameOf) {
  const known = rows.toSorted((one, other) => other.cost_usd - one.cost_usd || tokensOf(other) - tokensOf(one))
  replace(
    byId(id),
    element('h2', {}, title),
    known.length > 1 &&
      bars(
        `${isFree ? 'Tokens' : 'Cost'}, ${title.toLowerCase()}`,
        known.slice(0, MAX_BARS).map((row) => ({
          label: nameOf(row),
          value: isFree ? tokensOf(row) : row.cost_usd,
          text: isFree ? count(tokensOf(row)) : money(row.cost_usd),
        })),
      ),
    table({
      caption: title,
      rows: known.slice(0, MAX_ROWS),
      empty: 'Nothing was used yet. Say something to an agent.',
      columns: [
        { title: 'Name', cell: nameOf },
        { title: 'Calls', isNumber: true, cell: (row) => count(row.request_count) },
        { title: 'Tokens in', isNumber: true, cell: (row) => count(row.input_tokens) },
        { title: 'Tokens out', isNumber: true, cell: (row) => count(row.output_tokens) },
        { title: 'Cost', isNumber: true, cell: (row) => (row.unpriced_requests > 0 ? 'unknown' : money(row.cost_usd)) },
      ],
    }),
    known.length > MAX_ROWS &&
      element('p', { className: 'hint' }, `${count(known.length - MAX_ROWS)} more used less than these.`),
  )
}
const tokensOf = ({ input_tokens: input, output_tokens: output }) => input + output
/** Seven days each, the last of which is today; the first week may be shorter. */
function weeks(days) {
  const first = days.length % 7
  const starts = days.map((_, at) => at).filter((at) => at === 0 || at % 7 === first)
  return starts.map((start, at) => {
    const week = days.slice(start, starts[at + 1])
    const sum = (key) => week.reduce((total, one) => total + one[key], 0)
    return { date: week[0].date, cost_usd: sum('cost_usd'), tokens: sum('tokens') }
  })
}
const day = (date) =>
  new Date(`${date}T00:00:00Z`).toLocaleDateString(undefined, {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    timeZone: 'UTC',
  })

void refresh()
