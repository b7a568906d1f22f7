import { byId, call, element, keepInAddress, livePage, replace, show } from '../../kit/kit.js'
import { openInstall, prepareInstall } from './install.js'
import { pluginCard } from './plugin-card.js'
import { askToReload, askToRemove, showLog } from './plugin-dialogs.js'

/** What is not logged, such as a counter, is seen after this time. */
const POLL_MS = 10_000

let plugins = []

const isOwn = ({ source }) => source !== 'built-in'

/** Reads the list again. The daemon asks for the key when it has one that this page does not know. */
const refresh = livePage({
  content: [byId('plugins')],
  submit: 'Show the plugins',
  async load() {
    const answer = await call('GET', '/api/plugins')
    const before = JSON.stringify(plugins)
    plugins = answer.plugins.toSorted((one, other) => one.name.localeCompare(other.name))
    if (JSON.stringify(plugins) !== before) render()
  },
  words: ['plugin'],
  everyMs: POLL_MS,
})

function render() {
  const filter = byId('filter').value.trim().toLowerCase()
  const shown = plugins.filter((plugin) => matches(plugin, filter))
  const failed = plugins.filter(({ error }) => error).length
  byId('count').textContent = `${shown.length} of ${plugins.length}${failed > 0 ? `, ${failed} with an error` : ''}`
  const group = (title, members) =>
    members.length === 0 ? [] : [element('h2', {}, title), ...members.map((one) => pluginCard(one, actionsOf(one)))]
  const own = shown.filter(isOwn)
  const builtIn = shown.filter((plugin) => !isOwn(plugin))
  replace(byId('groups'), group('Your plugins', own), group('Built in', builtIn))
}

function matches({ name, registered }, filter) {
  return [name, ...registered.tools, ...registered.routes].some((text) => text.toLowerCase().includes(filter))
}

function actionsOf(plugin) {
  const { name } = plugin
  const Reload = () => askToReload(name, { onDone: finish, onFailed: refresh })
  const Log = () => showLog(name)
  if (!isOwn(plugin)) return { Log, Reload }
  return { Log, Reload, Update: () => void update(name), Remove: () => askToRemove(plugin, { onDone: finish }) }
}

/** From where it was installed; a plugin that was written in place came from nowhere. */
async function update(name) {
  show('notice')
  try {
    const { installed } = await call('GET', `/api/plugins/${encodeURIComponent(name)}`)
    openInstall({ name, source: installed?.source.slice(installed.source.indexOf(':') + 1) })
  } catch (error) {
    show('problem', error.message)
  }
}

async function finish(text) {
  await refresh()
  show('notice', text)
}

keepInAddress(byId('filter'))
byId('filter').addEventListener('input', render)
prepareInstall(({ name, version, status }) => finish(`${name} ${version} is ${status}.`))
void refresh()
