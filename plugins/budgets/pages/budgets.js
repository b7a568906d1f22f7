import { byId, call, element, livePage, money, openDialog, replace, show, table } from '../../kit/kit.js'

const POLL_MS = 15_000
const PERIODS = [
  ['hourly', 'An hour'],
  ['daily', 'A day'],
  ['monthly', 'A month'],
]

const refresh = livePage({
  content: [byId('limits'), byId('agents')],
  submit: 'Show the budgets',
  async load() {
    const [all, ranked, agents] = await Promise.all([
      call('GET', '/api/budget'),
      call('GET', '/api/budget/agents'),
      call('GET', '/api/agents'),
    ])
    replace(
      byId('limits'),
      element(
        'div',
        { className: 'card-top' },
        element('h2', {}, 'Everything'),
        badge(all.status),
        element('div', { className: 'buttons' }, changeButton('everything', '/api/budget', all)),
      ),
      periods('Everything', all),
      all.reserved_usd > 0 &&
        element('p', { className: 'hint' }, `${money(all.reserved_usd)} are set aside for calls that run.`),
      all.unpriced_requests_today > 0 &&
        element(
          'p',
          { className: 'problem warning' },
          `${all.unpriced_requests_today} calls of today have no known price: no sum has them in it.`,
        ),
    )
    const spent = new Map(ranked.map((one) => [one.agent_id, one]))
    const rows = agents.map(({ id, name }) => ({ id, name, ...spent.get(id) }))
    replace(
      byId('agents'),
      element('h2', {}, 'Agents'),
      table({
        caption: 'What agents spent',
        rows: rows.toSorted((one, other) => (other.total_cost_usd ?? 0) - (one.total_cost_usd ?? 0)),
        empty: 'There are no agents yet. Make one in the chat.',
        columns: [
          { title: 'Agent', cell: ({ name }) => name },
          { title: 'Today', isNumber: true, cell: ({ today_cost_usd: cost = 0 }) => money(cost) },
          { title: 'This month', isNumber: true, cell: ({ month_cost_usd: cost = 0 }) => money(cost) },
          { title: 'In all', isNumber: true, cell: ({ total_cost_usd: cost = 0 }) => money(cost) },
          { title: 'Limits', cell: ({ id, name }) => agentButton(id, name) },
        ],
      }),
    )
  },
  words: ['budget', 'usage'],
  everyMs: POLL_MS,
})

const badge = (status) =>
  element('span', { className: `badge ${{ ok: 'good', warning: 'warn', exceeded: 'bad' }[status] ?? ''}` }, status)

function periods(name, budget) {
  return table({
    caption: `Limits: ${name}`,
    rows: PERIODS.map(([key, title]) => ({ title, ...budget[key] })),
    columns: [
      { title: 'Period', cell: ({ title }) => title },
      { title: 'Spent', isNumber: true, cell: ({ spend }) => money(spend) },
      { title: 'Limit', isNumber: true, cell: ({ limit }) => (limit === 0 ? 'none' : money(limit)) },
      { title: 'Used', isNumber: true, cell: ({ limit, spend }) => (limit === 0 ? '' : share(spend / limit)) },
    ],
  })
}
const share = (part) => part.toLocaleString(undefined, { style: 'percent', maximumFractionDigits: 0 })

function agentButton(id, name) {
  const path = `/api/budget/agents/${encodeURIComponent(id)}`
  return element(
    'button',
    {
      type: 'button',
      'data-focus': id,
      'aria-label': `Limits of ${name}`,
      onclick: async () => {
        try {
          askForLimits(name, path, await call('GET', path))
        } catch (error) {
          show('problem', error.message)
        }
      },
    },
    'Limits',
  )
}
const changeButton = (name, path, budget) =>
  element(
    'button',
    { type: 'button', 'data-focus': 'change', onclick: () => askForLimits(name, path, budget) },
    'Change limits',
  )

function askForLimits(name, path, budget) {
  const fields = PERIODS.map(([key, title]) => {
    const limit = budget[key]?.limit ?? budget[`${key}_limit_usd`] ?? 0
    const input = element('input', { type: 'number', min: '0', step: 'any', value: limit === 0 ? '' : String(limit) })
    return { key, input, label: element('label', { className: 'field' }, `${title}, in USD`, input) }
  })
  openDialog({
    title: `Limits of ${name}`,
    content: [
      element(
        'p',
        { className: 'hint' },
        'A call that may go beyond a limit is refused before it is made. Empty: none.',
      ),
      fields.map(({ label }) => label),
    ],
    confirm: 'Save',
    async submit() {
      const values = fields.map(({ key, input }) => [`${key}_limit_usd`, input.value === '' ? 0 : Number(input.value)])
      await call('PUT', path, Object.fromEntries(values))
      await refresh()
      show('notice', `The limits of ${name} are saved.`)
    },
  })
}

void refresh()
