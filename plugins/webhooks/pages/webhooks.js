import { attempt, byId, call, element, facts, livePage, openDialog, replace, show, table, time } from '../../kit/kit.js'

const POLL_MS = 15_000
const refresh = livePage({
  content: [byId('actions'), byId('webhooks')],
  submit: 'Show the webhooks',
  async load() {
    const [{ webhooks }, subscriptions] = await Promise.all([
      call('GET', '/api/webhooks?counts=true'),
      call('GET', '/api/webhooks/events?counts=true'),
    ])
    const all = [
      ...webhooks.map((one) => ({ ...one, base: '/api/webhooks' })),
      ...subscriptions.map((one) => ({ ...one, name: one.url, base: '/api/webhooks/events' })),
    ]
    replace(
      byId('actions'),
      element(
        'button',
        { type: 'button', className: 'primary', 'data-focus': 'new', onclick: () => ask() },
        'New webhook',
      ),
    )
    replace(
      byId('webhooks'),
      all.length === 0 &&
        element(
          'p',
          { className: 'hint' },
          'None yet. A webhook tells another program what happens here, signed with a secret: “New webhook” makes one.',
        ),
      all.map(card),
    )
  },
  words: ['webhook', 'delivery'],
  everyMs: POLL_MS,
})

function card(hook) {
  const { name, url, events, enabled, secret, dead, pending, base } = hook
  return element(
    'section',
    { className: 'card', 'aria-label': name },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, name),
      element('span', { className: `badge ${enabled ? 'good' : ''}` }, enabled ? 'on' : 'off'),
      dead > 0 && element('span', { className: 'badge bad' }, `${dead} given up`),
      pending > 0 && element('span', { className: 'badge warn' }, `${pending} waiting`),
    ),
    element(
      'dl',
      {},
      ...facts([
        ['to', url],
        ['events', events.join(', ')],
        ['signed', secret === null ? 'no: the receiver cannot tell who sent it' : 'with a secret'],
      ]),
    ),
    element(
      'div',
      { className: 'actions start' },
      button('Deliveries', hook, () => attempt(() => showDeliveries(hook))),
      base === '/api/webhooks' && button('Send a test', hook, () => attempt(() => sendTest(hook))),
      button('Edit', hook, () => ask(hook)),
      button(enabled ? 'Switch off' : 'Switch on', hook, () =>
        attempt(async () => {
          await call('PUT', `${base}/${hook.id}`, { enabled: !enabled })
          await refresh()
        }),
      ),
      button('Remove', hook, () => askToRemove(hook)),
    ),
  )
}
function button(text, { id, name }, onclick) {
  return element(
    'button',
    { type: 'button', 'data-focus': `${text} ${id}`, 'aria-label': `${text}: ${name}`, onclick },
    text,
  )
}

async function sendTest({ id, name }) {
  const { status, response_status: code, error } = await call('POST', `/api/webhooks/${id}/test`)
  show('notice', status === 'sent' ? `${name} answered ${code}.` : '')
  show('problem', status === 'sent' ? '' : `${name}: ${error ?? `it answered ${code}`}`)
}

async function showDeliveries({ base, id, name }) {
  const { deliveries } = await call('GET', `${base}/${id}/deliveries?limit=100`)
  const retry = (delivery) =>
    delivery.state === 'dead' &&
    element(
      'button',
      {
        type: 'button',
        'aria-label': `Send ${delivery.id} again`,
        onclick: ({ currentTarget: pressed }) =>
          attempt(async () => {
            pressed.disabled = true
            await call('POST', `${base}/${id}/deliveries/${delivery.id}/retry`)
            pressed.textContent = 'It waits'
            await refresh()
          }),
      },
      'Again',
    )
  openDialog({
    title: `Deliveries of ${name}`,
    content: table({
      caption: 'Deliveries, the newest first',
      rows: deliveries,
      empty: 'Nothing was sent yet.',
      columns: [
        { title: 'Time', cell: ({ timestamp }) => time(timestamp) },
        { title: 'Event', cell: ({ event }) => event },
        {
          title: 'State',
          cell: ({ state, response_status: code, error }) => [state, code, error].filter(Boolean).join(', '),
        },
        { title: 'Attempts', isNumber: true, cell: ({ attempts }) => String(attempts) },
        { title: 'Actions', cell: (delivery) => retry(delivery) || '' },
      ],
    }),
  })
}

function ask(hook) {
  const name = element('input', { value: hook?.name, maxlength: '128', autocomplete: 'off' })
  const url = element('input', { type: 'url', value: hook?.url, placeholder: 'https://', autocomplete: 'off' })
  const events = element('input', { value: hook?.events.join(', ') ?? '', autocomplete: 'off', spellcheck: 'false' })
  const secret = element('input', { type: 'password', autocomplete: 'new-password', spellcheck: 'false' })
  const isEvent = hook?.base === '/api/webhooks/events'
  const field = (label, input, hint) =>
    element('label', { className: 'field' }, label, input, hint && element('span', { className: 'hint' }, hint))
  openDialog({
    title: hook ? `Edit ${hook.name}` : 'New webhook',
    content: [
      !isEvent && field('Name', name),
      field('Address', url),
      field(
        'Events',
        events,
        'Names with commas between them, such as agent_spawned, turn_failed; “all” for every one.',
      ),
      field(
        'Secret',
        secret,
        hook?.secret
          ? 'Left empty, the present one stays.'
          : 'Signs each request, so that the receiver knows who sent it.',
      ),
    ],
    confirm: 'Save',
    async submit() {
      const body = {
        ...(isEvent ? {} : { name: name.value.trim() }),
        url: url.value.trim(),
        events: events.value
          .split(',')
          .map((one) => one.trim())
          .filter(Boolean),
        ...(secret.value === '' ? {} : { secret: secret.value }),
      }
      if (hook) await call('PUT', `${hook.base}/${hook.id}`, body)
      else await call('POST', '/api/webhooks', body)
      await refresh()
      show('notice', 'The webhook is saved.')
    },
  })
}

function askToRemove({ base, id, name }) {
  openDialog({
    title: 'Remove this webhook?',
    content: element('p', {}, `${name} is told nothing from then on, and what waits to be sent to it is dropped.`),
    confirm: 'Remove',
    isDangerous: true,
    async submit() {
      await call('DELETE', `${base}/${id}`)
      await refresh()
    },
  })
}

void refresh()
