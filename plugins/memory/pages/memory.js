import { byId, call, element, facts, livePage, openDialog, replace, show, time } from '../../kit/kit.js'

const POLL_MS = 10_000
const LIMIT = 50

let drawn = ''
/** Agents by their ids. */
let names = new Map()

const refresh = livePage({
  content: [byId('search'), byId('memories')],
  submit: 'Show the memories',
  async load() {
    const text = byId('text').value.trim()
    const agent = byId('agent').value
    const place = agent === '' ? '/api/memory' : `/api/memory/agents/${agent}`
    const path =
      text === '' ? `${place}?limit=${LIMIT}` : `${place}/search?limit=${LIMIT}&q=${encodeURIComponent(text)}`
    const [found, agents] = await Promise.all([call('GET', path), call('GET', '/api/agents')])
    names = new Map(agents.map(({ id, name }) => [id, name]))
    render(found, text)
  },
  words: ['memory'],
  everyMs: POLL_MS,
})

function render({ memories, total = memories.length, index }, text) {
  // What has not changed is not drawn again: a text that is being read or selected stays.
  const now = JSON.stringify([memories, total, text, [...names]])
  if (now === drawn) return
  drawn = now
  const select = byId('agent')
  const chosen = select.value
  replace(
    select,
    [['', 'all agents'], ...names].map(([id, name]) => element('option', { value: id }, name)),
  )
  select.value = names.has(chosen) ? chosen : ''
  const some = index === 'words_only' ? ' Some could be found by their words only so far.' : ''
  byId('count').textContent =
    memories.length === 0
      ? `${text === '' ? 'There are no memories yet.' : 'Nothing is known about this.'}${some}`
      : `${memories.length} of ${total}.${some}`
  replace(
    byId('memories'),
    memories.map((memory) => element('li', {}, card(memory))),
  )
}

function card(memory) {
  const title = memory.key ?? memory.category ?? memory.level
  return element(
    'section',
    { className: 'card', 'aria-label': memory.content },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, title),
      element('span', { className: 'badge' }, memory.level),
      memory.source.labels.length > 0 && element('span', { className: 'badge warn' }, 'from outside'),
    ),
    element('p', { className: 'quote' }, memory.content),
    element(
      'dl',
      {},
      ...facts([
        ['known from', sourceOf(memory.source)],
        ['learnt', time(memory.created_at)],
        ['agent', names.get(memory.agent_id) ?? memory.agent_id],
        ['for', memory.user_id],
        ['tags', memory.tags.join(', ')],
      ]),
    ),
    element(
      'div',
      { className: 'buttons' },
      button('History', () => showHistory(memory)),
      button('Forget', () => askToForget(memory)),
    ),
  )
}
/** Why it is known. */
function sourceOf({ kind, person, tool, file, turnId, labels }) {
  const parts = [kind, person ?? tool ?? file, turnId && `turn ${turnId}`].filter(Boolean).join(' ')
  return labels.length === 0 ? parts : `${parts} (${labels.join(', ')})`
}

async function showHistory({ id }) {
  const { versions } = await call('GET', `/api/memory/items/${id}/history`)
  openDialog({
    title: 'History',
    content: versions.map(({ content, written_at: at }) =>
      element('p', { className: 'quote' }, `${new Date(at).toLocaleString()}: ${content}`),
    ),
    confirm: 'Close',
    async submit() {
      /* There is nothing to send. */
    },
  })
}
function askToForget({ id, content }) {
  openDialog({
    title: 'Forget this?',
    content: element('p', { className: 'quote' }, content),
    confirm: 'Forget',
    isDangerous: true,
    async submit() {
      await call('DELETE', `/api/memory/items/${id}`)
      await refresh()
      show('notice', 'It is forgotten, with its history.')
    },
  })
}
function button(text, run) {
  const made = element('button', { type: 'button' }, text)
  made.addEventListener('click', () => void Promise.resolve(run()).catch((error) => show('problem', error.message)))
  return made
}

byId('search').addEventListener('submit', (event) => {
  event.preventDefault()
  void refresh()
})
byId('agent').addEventListener('change', () => void refresh())
void refresh()
