import { byId, call, element, follow, openDialog, replace, show, showNavigation, time, withKey } from '../../kit/kit.js'
import { drawTopology } from './topology.js'

const MAX_EVENTS = 100
const RETRY_MS = 3000
const LOOKS = { agent_terminated: 'warn', task_completed: 'good' }

let isFollowing = false
let events = []

const refresh = withKey({
  content: [byId('content'), byId('live')],
  submit: 'Show what agents say to each other',
  async load() {
    const [topology, recent] = await Promise.all([
      call('GET', '/api/comms/topology'),
      call('GET', `/api/comms/events?limit=${MAX_EVENTS}`),
    ])
    events = recent
    renderTopology(topology)
    renderEvents()
    if (isFollowing) return
    isFollowing = true
    void showNavigation()
    void stayLive()
  },
})

function renderTopology(topology) {
  replace(
    byId('topology'),
    topology.nodes.length === 0
      ? element('p', { className: 'hint' }, 'There are no agents yet.')
      : drawTopology(topology, byId('topology').clientWidth || innerWidth),
  )
}

function renderEvents() {
  replace(
    byId('events'),
    events.length === 0 && element('li', { className: 'hint' }, 'Nothing happened yet.'),
    events.map(({ timestamp, kind, source_name: source, target_name: target, detail }) =>
      element(
        'li',
        {},
        time(timestamp),
        ' ',
        element('span', { className: `badge ${LOOKS[kind] ?? ''}` }, kind.replace('_', ' ')),
        ` ${source || 'somebody'}${target ? ` → ${target}` : ''}`,
        detail && element('p', { className: 'hint' }, detail),
      ),
    ),
  )
}

/** Reads the stream, and again after it broke; what happened meanwhile is read from the list. */
async function stayLive() {
  const live = byId('live')
  const say = (state, text) => {
    live.dataset.state = state
    live.textContent = text
  }
  for (;;) {
    const leaving = new AbortController()
    try {
      for await (const event of follow('/api/comms/events/stream', leaving.signal, () => say('live', 'Live')))
        await add(event)
    } catch (error) {
      say('lost', error.status === 0 ? 'No connection' : 'Connecting …')
    } finally {
      leaving.abort()
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
    await refresh()
  }
}
async function add(event) {
  if (!events.some(({ id }) => id === event.id)) events = [event, ...events].slice(0, MAX_EVENTS)
  renderEvents()
  renderTopology(await call('GET', '/api/comms/topology'))
}

async function askToSend() {
  const agents = await call('GET', '/api/agents')
  const choice = (label, first) => {
    const options = agents.map(({ id, name }) => element('option', { value: id }, name))
    const select = element('select', {}, first && element('option', { value: '' }, first), options)
    return [select, element('label', { className: 'field' }, label, select)]
  }
  const [to, toField] = choice('To')
  const [from, fromField] = choice('From', 'me')
  const text = element('textarea', {})
  const answer = element('p', { role: 'status', className: 'quote', hidden: true })
  openDialog({
    title: 'Send a message',
    content: [toField, fromField, element('label', { className: 'field' }, 'Message', text), answer],
    confirm: 'Send',
    busy: 'Waiting for the answer …',
    cancel: 'Close',
    async submit() {
      show(answer)
      const body = { to: to.value, content: text.value, ...(from.value && { from: from.value }) }
      const { response } = await call('POST', '/api/comms/send', body)
      show(answer, response || '(no text)')
      return false
    },
  })
}
byId('send').addEventListener('click', () => void askToSend().catch((error) => show('problem', error.message)))
void refresh()
