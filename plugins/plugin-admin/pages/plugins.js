import { call, useKey } from './api.js'
import { byId, element, show, whileBusy } from './elements.js'
import { prepareInstall } from './install.js'
import { pluginCard } from './plugin-card.js'

let plugins = []
/** The plugin that the user is asked about. */
let reloading = ''

const isOwn = ({ source }) => source !== 'built-in'

/** Reads the list again. The daemon asks for the key when it has one that this page does not know. */
async function refresh() {
  show('problem')
  try {
    const answer = await call('GET', '/api/plugins')
    plugins = answer.plugins.toSorted((one, other) => one.name.localeCompare(other.name))
  } catch (error) {
    if (error.status === 401) askForKey()
    else show('problem', error.message)
    return
  }
  byId('key-form').hidden = true
  byId('plugins').hidden = false
  byId('add').hidden = false
  render()
}

function askForKey() {
  const form = byId('key-form')
  // The second time it was refused.
  if (!form.hidden) show('problem', 'The daemon does not accept this key.')
  byId('plugins').hidden = true
  byId('add').hidden = true
  form.hidden = false
  byId('key').focus()
}

function render() {
  const filter = byId('filter').value.trim().toLowerCase()
  const shown = plugins.filter((plugin) => matches(plugin, filter))
  const failed = plugins.filter(({ error }) => error).length
  byId('count').textContent = `${shown.length} of ${plugins.length}${failed > 0 ? `, ${failed} with an error` : ''}`
  const open = new Set([...document.querySelectorAll('details[open]')].map((box) => box.parentElement.dataset.plugin))
  const group = (title, members) =>
    members.length === 0
      ? []
      : [
          element('h2', {}, title),
          ...members.map((one) => pluginCard(one, open.has(one.name), () => askToReload(one.name))),
        ]
  byId('groups').replaceChildren(
    ...group('Your plugins', shown.filter(isOwn)),
    ...group(
      'Built in',
      shown.filter((plugin) => !isOwn(plugin)),
    ),
  )
}

function matches({ name, registered }, filter) {
  return [name, ...registered.tools, ...registered.routes].some((text) => text.toLowerCase().includes(filter))
}

function askToReload(name) {
  reloading = name
  byId('reload-title').textContent = `Reload ${name}?`
  show('reload-problem')
  byId('reload').showModal()
  byId('reload-now').focus()
}

async function reload() {
  const name = reloading
  try {
    const { status } = await call('POST', `/api/plugins/${encodeURIComponent(name)}/reload`)
    byId('reload').close()
    await refresh()
    show('notice', status === 'reloaded' ? `${name} is reloaded.` : `${name} is being reloaded.`)
  } catch (error) {
    show('reload-problem', error.message)
    await refresh()
  }
}

byId('key-form').addEventListener('submit', (event) => {
  event.preventDefault()
  useKey(byId('key').value.trim())
  byId('key').value = ''
  void refresh()
})
byId('filter').addEventListener('input', render)
byId('reload-form').addEventListener('submit', (event) => {
  event.preventDefault()
  void whileBusy(byId('reload-now'), 'Reloading …', reload)
})
for (const button of document.querySelectorAll('dialog button[value=cancel]'))
  button.addEventListener('click', () => button.closest('dialog').close())
prepareInstall(async ({ name, version, status }) => {
  await refresh()
  show('notice', `${name} ${version} is ${status}.`)
})
void refresh()
