import {
  attempt,
  byId,
  call,
  count,
  element,
  keepInAddress,
  livePage,
  money,
  openDialog,
  replace,
  show,
  table,
  whileBusy,
} from '../../kit/kit.js'

const POLL_MS = 30_000
const MAX_MODELS = 100
let [models, usual, providers] = [[], {}, []]
let showsAll = false

const refresh = livePage({
  content: [byId('usual'), byId('providers'), byId('catalog')],
  submit: 'Show the models',
  async load() {
    ;[{ models }, usual, { providers }] = await Promise.all([
      call('GET', '/api/models'),
      call('GET', '/api/config/provider'),
      call('GET', '/api/providers'),
    ])
    drawUsual()
    drawProviders()
    drawModels()
  },
  words: ['provider', 'catalog'],
  everyMs: POLL_MS,
})
keepInAddress(byId('search'), byId('usable'))
for (const id of ['search', 'usable']) byId(id).addEventListener('input', drawModels)
byId('filter').addEventListener('submit', (event) => event.preventDefault())

const isReady = ({ auth_status: status }) => status === 'configured' || status === 'no_key_needed'

function drawUsual() {
  const { provider, model } = usual
  const isOffline = provider === 'builtin'
  const test = element('button', { type: 'button', 'data-focus': 'test' }, 'Test')
  test.addEventListener('click', () =>
    whileBusy(test, 'Asking …', () =>
      attempt(async () => say(await call('POST', '/api/config/provider/test'), `${provider}/${model}`)),
    ),
  )
  replace(
    byId('usual'),
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, 'Default model'),
      element('span', { className: `badge ${isOffline ? 'warn' : 'good'}` }, `${provider}/${model}`),
      element('div', { className: 'buttons' }, test),
    ),
    isOffline
      ? element(
          'p',
          {},
          'The model that comes with svc answers, and understands little. Give a provider below its key, then choose a model.',
        )
      : element('p', { className: 'hint' }, 'It answers for every agent that names no model of its own.'),
  )
}

const say = ({ status, latency_ms: latency, error }, name) => {
  const works = status === 'ok'
  show('notice', works ? `${name} answers${latency === undefined ? '' : `, in ${count(Math.round(latency))} ms`}.` : '')
  show('problem', works ? '' : `${name} does not answer: ${error ?? 'see the log'}`)
}

function drawProviders() {
  const sorted = providers.toSorted((one, other) => Number(isReady(other)) - Number(isReady(one)))
  const ready = sorted.filter(isReady)
  const rows = showsAll ? sorted : ready
  replace(
    byId('providers'),
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, 'Providers'),
      element(
        'div',
        { className: 'buttons' },
        element(
          'button',
          {
            type: 'button',
            className: ready.length <= 1 ? 'primary' : undefined,
            'data-focus': 'connect',
            onclick: askForProvider,
          },
          'Connect a provider',
        ),
        element(
          'button',
          {
            type: 'button',
            'data-focus': 'all',
            'aria-expanded': String(showsAll),
            onclick: () => {
              showsAll = !showsAll
              drawProviders()
            },
          },
          showsAll ? 'Only those that are ready' : `All ${providers.length}`,
        ),
      ),
    ),
    table({
      caption: 'Providers',
      rows,
      empty: 'None is ready yet.',
      columns: [
        { title: 'Provider', cell: ({ display_name: title }) => title },
        { title: 'State', cell: stateOf },
        { title: 'Models', isNumber: true, cell: ({ model_count: models }) => count(models) },
        { title: 'Actions', cell: actionsOf },
      ],
    }),
  )
}
function stateOf(provider) {
  const { auth_status: status, error } = provider
  const text = { configured: 'ready', no_key_needed: 'needs no key', missing: 'no key' }[status] ?? status
  return element('span', { className: `badge ${isReady(provider) ? 'good' : ''}`, title: error }, text)
}
function actionsOf(provider) {
  const { name, display_name: title, auth_status: status } = provider
  const button = (text, onclick) =>
    element(
      'button',
      { type: 'button', 'data-focus': `${text} ${name}`, 'aria-label': `${text}: ${title}`, onclick },
      text,
    )
  return element(
    'div',
    { className: 'buttons' },
    status !== 'no_key_needed' && button(status === 'configured' ? 'Change key' : 'Set key', () => askForKey(provider)),
    isReady(provider) &&
      button('Test', (event) =>
        whileBusy(event.currentTarget, 'Asking …', () =>
          attempt(async () => say(await call('POST', `/api/providers/${encodeURIComponent(name)}/test`), title)),
        ),
      ),
    isReady(provider) && button('Use', () => askForModel(provider)),
  )
}

function askForProvider() {
  const waiting = providers.filter((provider) => !isReady(provider))
  const select = element(
    'select',
    {},
    waiting.map(({ name, display_name: title }) => element('option', { value: name }, title)),
  )
  openDialog({
    title: 'Connect a provider',
    content: [
      element('p', { className: 'hint' }, 'Ollama on this machine is found by itself and needs no key.'),
      element('label', { className: 'field' }, 'Provider', select),
    ],
    confirm: 'Next',
    async submit() {
      const chosen = waiting.find(({ name }) => name === select.value)
      if (chosen) queueMicrotask(() => askForKey(chosen))
    },
  })
}

function askForKey(provider) {
  const { name, display_name: title, env_var: variable } = provider
  const key = element('input', { type: 'password', autocomplete: 'off', spellcheck: 'false', required: true })
  openDialog({
    title: `Key of ${title}`,
    content: [
      element('label', { className: 'field' }, 'API key', key),
      element(
        'p',
        { className: 'hint' },
        `It goes to the vault of this daemon, encrypted, and is not shown again.${variable ? ` The variable ${variable} would do the same.` : ''}`,
      ),
    ],
    confirm: 'Save and test',
    busy: 'Asking the provider …',
    async submit() {
      const path = `/api/providers/${encodeURIComponent(name)}`
      await call('POST', `${path}/key`, { key: key.value.trim() })
      const answer = await call('POST', `${path}/test`)
      await refresh()
      say(answer, title)
      if (answer.status === 'ok') queueMicrotask(() => askForModel(provider))
    },
  })
}

function askForModel({ name, display_name: title, default_model: suggested }) {
  const own = models.filter(({ provider }) => provider === name).map(({ id }) => id)
  const list = element(
    'datalist',
    { id: 'own-models' },
    own.map((value) => element('option', { value })),
  )
  const field = element('input', {
    value: suggested ?? own[0] ?? '',
    list: 'own-models',
    autocomplete: 'off',
    spellcheck: 'false',
  })
  openDialog({
    title: `Use ${title}`,
    content: [
      element('p', { className: 'hint' }, 'It answers from now on for every agent that names no model of its own.'),
      element('label', { className: 'field' }, 'Model', field),
      list,
    ],
    confirm: 'Use it',
    async submit() {
      const model = field.value.trim()
      await call('PUT', '/api/config/provider', { provider: name, ...(model === '' ? {} : { model }) })
      await refresh()
      show('notice', `${title} answers now. Say something in the chat.`)
    },
  })
}

function drawModels() {
  const words = byId('search').value.toLowerCase().split(/\s+/)
  const usable = byId('usable').checked
  const found = models.filter(({ id, provider, display_name: title, available }) => {
    const text = `${provider}/${id} ${title}`.toLowerCase()
    return (!usable || available) && words.every((word) => text.includes(word))
  })
  const ability = ({ supports_tools: tools, supports_vision: vision, supports_thinking: thinking }) =>
    [tools && 'tools', vision && 'images', thinking && 'reasoning'].filter(Boolean).join(', ')
  const price = (usd, isKnown) => (isKnown ? money(usd) : 'unknown')
  replace(
    byId('models'),
    table({
      caption: 'Models, prices for a million tokens',
      rows: found.slice(0, MAX_MODELS),
      empty: usable
        ? 'No provider that is ready has such a model. Connect one, or show all.'
        : 'No model is called that.',
      columns: [
        { title: 'Model', cell: ({ provider, id }) => `${provider}/${id}` },
        { title: 'Window', isNumber: true, cell: ({ context_window: window }) => count(window) },
        { title: 'In', isNumber: true, cell: (model) => price(model.input_cost_per_1m, model.pricing_known) },
        { title: 'Out', isNumber: true, cell: (model) => price(model.output_cost_per_1m, model.pricing_known) },
        { title: 'Can', cell: ability },
      ],
    }),
    found.length > MAX_MODELS &&
      element('p', { className: 'hint' }, `${count(found.length - MAX_MODELS)} more. Search for one.`),
  )
}

void refresh()
