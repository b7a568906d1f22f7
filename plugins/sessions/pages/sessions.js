import {
  attempt,
  byId,
  call,
  count,
  element,
  keepInAddress,
  livePage,
  openDialog,
  replace,
  show,
  table,
  time,
} from '../../kit/kit.js'

const POLL_MS = 15_000
const MAX_ROWS = 200
let sessions = []

const refresh = livePage({
  content: [byId('filter'), byId('found'), byId('sessions')],
  submit: 'Show the conversations',
  async load() {
    ;({ sessions } = await call('GET', '/api/sessions'))
    draw()
  },
  words: ['session', 'turn'],
  everyMs: POLL_MS,
  onOpen: () => void attempt(search),
})

function draw() {
  const newest = sessions.toSorted((one, other) => (one.created_at < other.created_at ? 1 : -1))
  replace(
    byId('sessions'),
    table({
      caption: 'Conversations, the newest first',
      rows: newest.slice(0, MAX_ROWS),
      empty: 'There are none yet. Say something to an agent.',
      columns: [
        { title: 'Title', cell: ({ label, title, id }) => label ?? (title || id) },
        {
          title: 'Agent',
          cell: ({ agent_name: agent, agent_id: id }) => element('a', { href: `/#${id}` }, agent ?? id),
        },
        { title: 'Messages', isNumber: true, cell: ({ message_count: messages }) => count(messages) },
        { title: 'Begun', cell: ({ created_at: begun }) => time(begun) },
        { title: 'Actions', cell: buttons },
      ],
    }),
    newest.length > MAX_ROWS &&
      element('p', { className: 'hint' }, `${count(newest.length - MAX_ROWS)} older ones: search for them.`),
  )
}

function buttons(session) {
  const { id, label, title } = session
  const name = label ?? (title || id)
  const button = (text, onclick) =>
    element(
      'button',
      { type: 'button', 'data-focus': `${text} ${id}`, 'aria-label': `${text}: ${name}`, onclick },
      text,
    )
  return element(
    'div',
    { className: 'buttons' },
    button('Rename', () => askForLabel(id, label ?? title)),
    button('Export', () => attempt(() => download(id, name))),
    button('Delete', () => askToDelete(id, name)),
  )
}

function askForLabel(id, label) {
  const field = element('input', { value: label, maxlength: '128', autocomplete: 'off' })
  openDialog({
    title: 'Rename',
    content: element('label', { className: 'field' }, 'Title', field),
    confirm: 'Save',
    async submit() {
      await call('PUT', `/api/sessions/${id}/label`, { label: field.value.trim() })
      await refresh()
    },
  })
}

/** Saves all messages as Markdown. */
async function download(id, name) {
  const { messages } = await call('GET', `/api/sessions/${id}`)
  const text = messages.map(({ role, content }) => `## ${role}\n\n${content}\n`).join('\n')
  const link = element('a', { download: `${name.replaceAll(/[^\p{L}\p{N}._-]+/gu, '-').slice(0, 80) || id}.md` })
  link.href = URL.createObjectURL(new Blob([`# ${name}\n\n${text}`], { type: 'text/markdown' }))
  link.click()
  URL.revokeObjectURL(link.href)
}

function askToDelete(id, name) {
  openDialog({
    title: 'Delete this conversation?',
    content: element('p', {}, `“${name}” and all its messages are deleted. What agents remember of it stays.`),
    confirm: 'Delete',
    isDangerous: true,
    async submit() {
      await call('DELETE', `/api/sessions/${id}`)
      await refresh()
      show('notice', `“${name}” is deleted.`)
    },
  })
}

keepInAddress(byId('search'))
byId('filter').addEventListener('submit', (event) => {
  event.preventDefault()
  void attempt(search)
})
function linkTo(id, agent, label) {
  const session = sessions.find((one) => one.id === id)
  return element('a', { href: `/#${agent}` }, label ?? session?.title ?? id)
}
async function search() {
  const text = byId('search').value.trim()
  if (text === '') return replace(byId('found'))
  const { results, complete: isWhole } = await call('GET', `/api/sessions/search?q=${encodeURIComponent(text)}`)
  replace(
    byId('found'),
    element('h2', {}, 'Found'),
    table({
      caption: 'Messages that were found',
      rows: results,
      empty: 'Nobody said this.',
      columns: [
        { title: 'Time', cell: ({ created_at: at }) => time(at) },
        { title: 'Conversation', cell: ({ session_id: id, agent_id: agent, label }) => linkTo(id, agent, label) },
        { title: 'Who', cell: ({ role }) => role },
        { title: 'What', cell: ({ snippet }) => snippet },
      ],
    }),
    !isWhole && element('p', { className: 'hint' }, 'The oldest messages were not looked at.'),
  )
}

void refresh()
