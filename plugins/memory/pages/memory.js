import {
  attempt,
  byId,
  call,
  element,
  facts,
  keepInAddress,
  livePage,
  openDialog,
  replace,
  show,
  time,
} from '../../kit/kit.js'

const POLL_MS = 10_000
const LIMIT = 50
const MAX_PEOPLE = 100
/** Messages of one request, and requests for one message. */
const PAGE = 100
const MAX_PAGES = 50
/** What the answer of a search says of its indexes. */
const NOTES = new Map([
  ['words_only', ' Some could be found by their words only so far.'],
  ['filling', ' Some of an older version cannot be found by their words yet.'],
])

keepInAddress(byId('text'), byId('agent'), byId('person'))

const LEVELS = { agent: 'of the agent', user: 'of a person', session: 'of a conversation' }

/** Agents by their ids. */
let names = new Map()

const refresh = livePage({
  content: [byId('search'), byId('memories')],
  submit: 'Show the memories',
  async load() {
    const text = byId('text').value.trim()
    const person = byId('person').value
    const paths = [pathOf(text, byId('agent').value, person), '/api/agents', `/api/memory/users?limit=${MAX_PEOPLE}`]
    const [found, agents, { users }] = await Promise.all(paths.map((path) => call('GET', path)))
    names = new Map(agents.map(({ id, name }) => [id, name]))
    renderPeople(users)
    // A search is of all persons.
    const isOfPerson = ({ user_id: user }) => text === '' || person === '' || user === person
    render({ ...found, memories: found.memories.filter(isOfPerson) }, text)
  },
  words: ['memory'],
  everyMs: POLL_MS,
  onOpen: openLinked,
})
function pathOf(text, agent, person) {
  if (text === '' && person !== '') return `/api/memory/user/${encodeURIComponent(person)}?limit=${LIMIT}`
  const place = agent === '' ? '/api/memory' : `/api/memory/agents/${agent}`
  return text === '' ? `${place}?limit=${LIMIT}` : `${place}/search?limit=${LIMIT}&q=${encodeURIComponent(text)}`
}
/** One for whom nothing is kept any more may still be chosen. */
function renderPeople(users) {
  const select = byId('person')
  const chosen = select.value
  const ids = new Set([...users.map(({ user_id: id }) => id), chosen].filter((id) => id !== ''))
  const options = [...ids].map((id) => element('option', { value: id }, id))
  replace(select, [element('option', { value: '' }, 'everybody'), ...options])
  select.value = chosen
  byId('people').hidden = ids.size === 0
  byId('forget-person').hidden = chosen === ''
  // What is kept for a person is of all agents.
  byId('agent').disabled = chosen !== '' && byId('text').value.trim() === ''
}
/** What the chat page links to. */
function openLinked() {
  const id = location.hash.slice(1)
  if (/^[0-9a-f-]{36}$/.test(id)) void attempt(() => showHistory({ id }))
}

function render({ memories, total = memories.length, index }, text) {
  const select = byId('agent')
  const chosen = select.value
  replace(
    select,
    [['', 'all agents'], ...names].map(([id, name]) => element('option', { value: id }, name)),
  )
  select.value = names.has(chosen) ? chosen : ''
  const some = NOTES.get(index) ?? ''
  byId('count').textContent =
    memories.length === 0
      ? `${text === '' ? 'There are no memories yet. Agents write down what they should know later; “New memory” tells them something.' : 'Nothing is known about this.'}${some}`
      : `${memories.length} of ${total}.${some}`
  replace(
    byId('memories'),
    memories.map((memory) => element('li', {}, card(memory))),
  )
}

function card(memory) {
  const title = memory.key ?? (memory.category ?? 'memory').replaceAll('_', ' ')
  return element(
    'section',
    { className: 'card', 'aria-label': memory.content },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, title),
      element('span', { className: 'badge' }, LEVELS[memory.level]),
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
      button('Edit', () => edit(memory)),
      button('History', () => showHistory(memory)),
      memory.source.sessionId && memory.source.turnId && button('Show the message', () => showMessage(memory.source)),
      button('Forget', () => askToForget(memory)),
    ),
  )
}
/** Why it is known, behind "known from". */
function sourceOf({ kind, person, tool, file, turnId, labels }) {
  const names = {
    message: 'a message',
    tool: `the tool ${tool ?? ''}`,
    file: `the file ${file ?? ''}`,
    person: person ?? 'somebody',
    import: `an import ${person ? `by ${person}` : (file ?? '')}`,
    agent: 'the agent',
  }
  const words = turnId ? `${names[kind].trim()}, turn ${turnId}` : names[kind].trim()
  return labels.length === 0 ? words : `${words} (${labels.join(', ')})`
}

/** What was said and answered in the turn that a memory is known from. */
async function showMessage({ sessionId, turnId }) {
  const path = `/api/sessions/${encodeURIComponent(sessionId)}?limit=${PAGE}`
  let said = []
  let next = path
  for (let page = 0; next !== undefined && said.length === 0 && page < MAX_PAGES; page++) {
    const { messages, has_earlier: hasEarlier } = await call('GET', next)
    said = messages.filter(({ turn_id: id }) => id === turnId)
    next = hasEarlier ? `${path}&before=${encodeURIComponent(messages[0].id)}` : undefined
  }
  openDialog({
    title: 'Known from',
    content:
      said.length === 0
        ? element('p', {}, 'The message is no longer in the conversation.')
        : said.flatMap(({ role, content }) => [
            element('p', { className: 'hint' }, role),
            element('p', { className: 'quote' }, content),
          ]),
  })
}

async function showHistory({ id }) {
  const { versions, deleted_at: deletedAt } = await call('GET', `/api/memory/items/${id}/history`)
  openDialog({
    title: 'History',
    content: deletedAt
      ? element('p', {}, `It was forgotten on ${new Date(deletedAt).toLocaleString()}.`)
      : versions.flatMap(({ content, written_at: at, source }) => [
          element('p', { className: 'quote' }, `${new Date(at).toLocaleString()}: ${content}`),
          source && element('p', { className: 'hint' }, `known from ${sourceOf(source)}`),
        ]),
  })
}
function add() {
  const text = element('textarea', { required: true })
  const agent = element('select', {}, ...[...names].map(([id, name]) => element('option', { value: id }, name)))
  const chosen = byId('agent').value
  if (chosen !== '') agent.value = chosen
  const user = element('input', { autocomplete: 'off' })
  const tags = element('input', { autocomplete: 'off' })
  openDialog({
    title: 'New memory',
    content: [
      field('What is known', text, 'A sentence. It counts as your own word.'),
      field('Agent', agent),
      field('Person', user, 'Id of whom it is about and for; empty: you, and whoever talks to the agent.'),
      field('Tags', tags, 'With commas between them.'),
    ],
    confirm: 'Add',
    async submit() {
      const words = tags.value.split(',').map((tag) => tag.trim())
      const body = { content: text.value, agent_id: agent.value, tags: words.filter((tag) => tag !== '') }
      const person = user.value.trim()
      await call('POST', '/api/memory', person === '' ? body : { ...body, user_id: person })
      await refresh()
      show('notice', 'It is remembered.')
    },
  })
}
function edit({ id, content }) {
  const text = element('textarea', { required: true })
  text.value = content
  openDialog({
    title: 'Edit memory',
    content: field('What is known', text, 'What it said before stays in its history.'),
    confirm: 'Save',
    async submit() {
      await call('PUT', `/api/memory/items/${id}`, { content: text.value })
      await refresh()
      show('notice', 'It is changed.')
    },
  })
}
const field = (label, control, hint) =>
  element('label', { className: 'field' }, label, control, hint && element('span', { className: 'hint' }, hint))
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
function askToForgetPerson() {
  const person = byId('person').value
  openDialog({
    title: 'Forget this person?',
    content: element('p', {}, `Everything that any agent keeps for “${person}” is deleted, with its history.`),
    confirm: 'Forget',
    isDangerous: true,
    async submit() {
      const { deleted } = await call('DELETE', `/api/memory/user/${encodeURIComponent(person)}`)
      byId('person').value = ''
      byId('person').dispatchEvent(new Event('change'))
      show('notice', deleted === 1 ? '1 memory is forgotten.' : `${deleted} memories are forgotten.`)
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
byId('add').addEventListener('click', add)
byId('agent').addEventListener('change', () => void refresh())
byId('person').addEventListener('change', () => void refresh())
byId('forget-person').addEventListener('click', askToForgetPerson)
void refresh()
