import {
  attempt,
  byId,
  call,
  element,
  keepInAddress,
  livePage,
  openDialog,
  openLogin,
  replace,
  show,
} from '../../kit/kit.js'
import { askToAdd } from './add-dialog.js'
import { catalogueCard, installedCard } from './integration-card.js'

const POLL_MS = 10_000

let state = { installed: [], health: [], integrations: [], categories: [], problems: [] }
/** The dialog that waits for a login, and whose. */
let waiting
const refresh = livePage({
  content: [byId('integrations')],
  submit: 'Show the integrations',
  async load() {
    const [{ installed }, { health }, available] = await Promise.all([
      call('GET', '/api/integrations'),
      call('GET', '/api/integrations/health'),
      call('GET', '/api/integrations/available'),
    ])
    state = { installed, health, ...available }
    render()
    noticeLogin()
  },
  words: ['integration', 'mcp'],
  everyMs: POLL_MS,
})

function render() {
  const search = byId('search').value.trim().toLowerCase().split(/\s+/)
  const category = byId('category').value
  const { installed, health, integrations, categories, problems } = state
  const healthOf = new Map(health.map((each) => [each.id, each]))
  replace(
    byId('installed'),
    installed.length === 0
      ? [element('p', { className: 'hint' }, 'Nothing was added yet. Choose a service below: agents get its tools.')]
      : installed.map((each) => installedCard(each, { health: healthOf.get(each.id), ...actionsOf(each) })),
  )
  const shown = integrations.filter((each) => matches(each, search, category))
  byId('count').textContent = `${shown.length} of ${integrations.length}`
  replace(
    byId('catalogue'),
    shown.map((entry) => catalogueCard(entry, { onAdd: () => add(entry) })),
  )
  byId('problems').hidden = problems.length === 0
  replace(
    byId('problems'),
    problems.map(({ file, message }) => element('li', {}, `${file}: ${message}`)),
  )
  const known = new Set([...byId('category').options].map(({ value }) => value))
  byId('category').append(...categories.filter((each) => !known.has(each)).map((each) => option(each)))
}
const option = (value) => element('option', { value }, value)

function matches({ id, name, description, tags, category }, words, wanted) {
  if (wanted !== '' && category !== wanted) return false
  const text = [id, name, description, ...tags].join(' ').toLowerCase()
  return words.every((word) => text.includes(word))
}

function add(entry) {
  show('notice')
  askToAdd(entry, {
    isTaken: state.installed.some(({ id }) => id === entry.id),
    async onDone({ id, message }) {
      await refresh()
      show('notice', `${id} is added. ${message}.`)
    },
  })
}

function actionsOf({ id, name, status }) {
  const path = `/api/integrations/${encodeURIComponent(id)}`
  return {
    onLogin: () => orSay(() => login(id, name)),
    onReconnect: () =>
      orSay(async () => {
        const { status, error } = await call('POST', `${path}/reconnect`)
        await refresh()
        show('notice', status === 'connected' ? `${name} is connected.` : `${name} is not connected: ${error}`)
      }),
    onSwitch: () =>
      orSay(async () => {
        const enabled = status === 'disabled'
        await call('PUT', `/api/mcp/servers/${encodeURIComponent(id)}`, { enabled })
        await refresh()
        show('notice', enabled ? `${name} is on again.` : `${name} is off.`)
      }),
    onRemove: () =>
      openDialog({
        title: `Remove ${name}?`,
        content: element('p', {}, 'Its program ends, and its secrets are deleted. Agents can no longer use its tools.'),
        confirm: 'Remove',
        busy: 'Removing …',
        isDangerous: true,
        async submit() {
          await call('DELETE', path)
          await refresh()
          show('notice', `${name} is removed.`)
        },
      }),
  }
}

/** The vendor asks the person on a page of its own, and sends the browser back to the daemon. */
async function login(id, name) {
  const { status, authorization_url: url } = await call('POST', `/api/mcp/servers/${encodeURIComponent(id)}/login`)
  if (status === 'logged_in') {
    await refresh()
    show('notice', `${name} needs no login.`)
    return
  }
  const dialog = openLogin({
    title: `Sign in to ${name}`,
    hint: 'The page of the vendor sends you back to this daemon when you have signed in.',
    link: `Open the login of ${name}`,
    url,
    refresh,
    onClose() {
      waiting = undefined
    },
  })
  waiting = { id, name, dialog }
}
/** The login happens on another page: what the person left here has nothing to say any more when it is done. */
function noticeLogin() {
  const { id, name, dialog } = waiting ?? {}
  if (id === undefined || state.installed.find((each) => each.id === id)?.status === 'setup') return
  dialog.close()
  show('notice', `You are signed in to ${name}.`)
}
async function orSay(work) {
  show('notice')
  await attempt(work)
}

keepInAddress(byId('search'), byId('category'))
for (const id of ['search', 'category']) byId(id).addEventListener('input', render)
void refresh()
