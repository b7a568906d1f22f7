import {
  byId,
  call,
  element,
  followChanges,
  openDialog,
  replace,
  show,
  showNavigation,
  withKey,
} from '../../kit/kit.js'
import { askToAdd } from './add-dialog.js'
import { catalogueCard, installedCard } from './integration-card.js'

const POLL_MS = 10_000

let state = { installed: [], health: [], integrations: [], categories: [], problems: [] }
let isFollowing = false
let drawn = ''

const refresh = withKey({
  content: [byId('integrations'), byId('live')],
  submit: 'Show the integrations',
  async load() {
    const [{ installed }, { health }, available] = await Promise.all([
      call('GET', '/api/integrations'),
      call('GET', '/api/integrations/health'),
      call('GET', '/api/integrations/available'),
    ])
    state = { installed, health, ...available }
    render()
    if (isFollowing) return
    isFollowing = true
    void showNavigation()
    followChanges({ words: ['integration', 'mcp'], everyMs: POLL_MS, refresh, indicator: byId('live') })
  },
})

function render() {
  const search = byId('search').value.trim().toLowerCase().split(/\s+/)
  const category = byId('category').value
  // What has not changed is not drawn again: a text that is being read or selected stays.
  const now = JSON.stringify([state, search, category])
  if (now === drawn) return
  drawn = now
  const { installed, health, integrations, categories, problems } = state
  const healthOf = new Map(health.map((each) => [each.id, each]))
  replace(
    byId('installed'),
    installed.length === 0
      ? [element('p', { className: 'hint' }, 'Nothing was added yet.')]
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

function actionsOf({ id, name }) {
  const path = `/api/integrations/${encodeURIComponent(id)}`
  return {
    onLogin: () => orSay(() => login(id, name)),
    onReconnect: () =>
      orSay(async () => {
        const { status, error } = await call('POST', `${path}/reconnect`)
        await refresh()
        show('notice', status === 'connected' ? `${name} is connected.` : `${name} is not connected: ${error}`)
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
  openDialog({
    title: `Sign in to ${name}`,
    content: [
      element('p', {}, 'The page of the vendor sends you back to this daemon when you have signed in.'),
      element(
        'p',
        {},
        element('a', { href: url, target: '_blank', rel: 'noreferrer noopener' }, `Open the login of ${name}`),
      ),
    ],
    onClose: () => void refresh(),
  })
}
async function orSay(work) {
  show('notice')
  try {
    await work()
  } catch (error) {
    openDialog({ title: 'It was not done', content: element('p', {}, error.message) })
  }
}

for (const id of ['search', 'category']) byId(id).addEventListener('input', render)
void refresh()
