import { attempt, byId, call, element, facts, livePage, openDialog, replace, show, time } from '../../kit/kit.js'
import { manifestEditor } from './manifest-editor.js'

const POLL_MS = 10_000
let drawn = ''

const refresh = livePage({
  content: [byId('summary'), byId('agents')],
  submit: 'Show the agents',
  async load() {
    render(await call('GET', '/api/agents'))
  },
  words: ['agent'],
  everyMs: POLL_MS,
  onOpen: () => void openNamed(),
})

function render(agents) {
  // What has not changed is not drawn again: a text that is being read or selected stays.
  const now = JSON.stringify(agents)
  if (now === drawn) return
  drawn = now
  const count = agents.length === 1 ? 'One agent.' : `${agents.length || 'No'} agents.`
  replace(byId('summary'), [
    element(
      'button',
      { type: 'button', className: 'primary', 'data-focus': 'new', onclick: askForManifest },
      'New agent',
    ),
    element('span', {}, count),
  ])
  replace(
    byId('agents'),
    agents.length === 0 &&
      element('p', { className: 'hint' }, 'Make one from a template in the chat, or from a manifest here.'),
    agents.map(card),
  )
}

function card(agent) {
  const { id, name, state, model_provider: provider, model_name: model, created_at: created } = agent
  const isPaused = state === 'Paused'
  return element(
    'section',
    { className: 'card', 'aria-label': name },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, name),
      element('span', { className: `badge ${state === 'Running' ? 'good' : 'warn'}` }, state.toLowerCase()),
    ),
    element(
      'dl',
      {},
      ...facts([
        ['model', provider === 'default' ? 'default model' : `${provider}/${model}`],
        ['made', time(created)],
        ['id', element('code', {}, id)],
      ]),
    ),
    element(
      'div',
      { className: 'actions start' },
      element('a', { href: `/#${id}` }, 'Chat'),
      button('Edit', agent, () => edit(id)),
      button('Duplicate', agent, () => askForCopy(agent)),
      button(isPaused ? 'Resume' : 'Pause', agent, () =>
        attempt(async () => {
          await call('PUT', `/api/agents/${id}/${isPaused ? 'resume' : 'suspend'}`)
          await refresh()
        }),
      ),
      button('Log', agent, () => attempt(() => showLog(agent))),
      button('Remove', agent, () => askToRemove(agent)),
    ),
  )
}

function button(text, { name }, onclick) {
  return element(
    'button',
    { type: 'button', 'data-focus': `${text} ${name}`, 'aria-label': `${text}: ${name}`, onclick },
    text,
  )
}

/** `#edit=<id>`, `#new`: the chat page links to the form. */
async function openNamed() {
  const [, isNew, id] = /^#(?:(new)|edit=([\da-f-]{36}))$/.exec(location.hash) ?? []
  if (isNew === undefined && id === undefined) return
  // A reload does not open it again.
  history.replaceState(undefined, '', location.pathname)
  if (isNew === undefined) await edit(id)
  else askForManifest()
}
addEventListener('hashchange', () => void openNamed())

async function edit(id) {
  await attempt(async () => {
    const { name, manifest_toml: manifest } = await call('GET', `/api/agents/${id}`)
    const editor = manifestEditor(manifest, id)
    openDialog({
      title: `Edit ${name}`,
      content: [element('p', { className: 'hint' }, 'What is saved holds from its next turn on.'), editor.content],
      confirm: 'Save',
      async submit() {
        const text = await editor.text()
        const { warnings } = await call('PATCH', `/api/agents/${id}`, { manifest_toml: text })
        await refresh()
        show('notice', [`${name} is saved.`, ...warnings].join(' '))
      },
    })
    editor.check()
  })
}

const NEW = `name = "helper"
description = "What it is for"

[model]
provider = "default"
model = "default"
system_prompt = "You help."

[capabilities]
tools = ["memory_*", "system_time"]
`
function askForManifest() {
  const editor = manifestEditor(NEW)
  openDialog({
    title: 'New agent',
    content: [element('p', { className: 'hint' }, 'The chat has templates.'), editor.content],
    confirm: 'Make it',
    async submit() {
      const { name, warnings = [] } = await call('POST', '/api/agents', { manifest_toml: await editor.text() })
      await refresh()
      show('notice', [`${name} is there.`, ...warnings].join(' '))
    },
  })
  editor.check()
}

function askForCopy({ id, name }) {
  const field = element('input', { value: `${name}-copy`, autocomplete: 'off', spellcheck: 'false' })
  openDialog({
    title: `Duplicate ${name}`,
    content: [
      element(
        'p',
        { className: 'hint' },
        'The copy has the manifest and the files of its workspace, and none of its conversations.',
      ),
      element('label', { className: 'field' }, 'Name', field),
    ],
    confirm: 'Duplicate',
    async submit() {
      await call('POST', `/api/agents/${id}/clone`, { new_name: field.value.trim() })
      await refresh()
      show('notice', `${field.value.trim()} is there.`)
    },
  })
}

async function showLog({ id, name }) {
  const { logs } = await call('GET', `/api/agents/${id}/logs?n=50`)
  openDialog({
    title: `What ${name} did`,
    content:
      logs.length === 0
        ? element('p', {}, 'Nothing is recorded of it.')
        : element(
            'dl',
            {},
            logs.flatMap(({ timestamp, action, detail }) => [
              element('dt', {}, time(timestamp)),
              element('dd', {}, element('code', {}, action), ` ${detail}`),
            ]),
          ),
  })
}

function askToRemove({ id, name }) {
  openDialog({
    title: `Remove ${name}?`,
    content: element(
      'p',
      {},
      'Its conversations, memories, schedules and triggers are deleted with it. The audit trail keeps what it did.',
    ),
    confirm: 'Remove',
    isDangerous: true,
    async submit() {
      await call('DELETE', `/api/agents/${id}`)
      await refresh()
      show('notice', `${name} is removed.`)
    },
  })
}

void refresh()
