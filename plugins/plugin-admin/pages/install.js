import { byId, call, element, facts, show, whileBusy } from '../../kit/kit.js'

/** What was checked and may be installed. */
let pending

/** Wires the form that installs. `onInstalled` gets the answer of the daemon. */
export function prepareInstall(onInstalled) {
  byId('add').addEventListener('click', () => openInstall())
  for (const button of document.querySelectorAll('#install button[value=cancel]'))
    button.addEventListener('click', () => byId('install').close())
  byId('source-form').addEventListener('submit', (event) => {
    event.preventDefault()
    void whileBusy(byId('check'), 'Checking …', check)
  })
  byId('accept-form').addEventListener('submit', (event) => {
    event.preventDefault()
    void whileBusy(byId('accept'), 'Installing …', () => accept(onInstalled))
  })
}

/** Opens the form; to update a plugin, with the source it came from. */
export function openInstall({ name, source } = {}) {
  pending = undefined
  byId('install-title').textContent = name === undefined ? 'Install a plugin' : `Update ${name}`
  byId('source').value = source ?? ''
  byId('update').checked = name !== undefined
  showStep('source')
  show('source-problem')
  byId('install').showModal()
}

function showStep(step) {
  byId('source-form').hidden = step !== 'source'
  byId('accept-form').hidden = step !== 'accept'
  byId('install').setAttribute('aria-labelledby', step === 'source' ? 'install-title' : 'found')
}

/** An address begins with its scheme, a path with a slash; everything else is a package. */
function toRequest(text) {
  if (/^https:\/\/github\.com\/[^/]+\/[^/]+\/?$/.test(text)) return { source: 'git', url: text }
  if (/^https?:\/\//.test(text)) return { source: 'url', url: text }
  if (text.startsWith('/')) return { source: 'local', path: text }
  return { source: 'registry', name: text }
}

async function check() {
  show('source-problem')
  const request = { ...toRequest(byId('source').value.trim()), update: byId('update').checked }
  try {
    const found = await call('POST', '/api/plugins/install', { ...request, dry_run: true })
    // The hash makes sure that what is installed is what is shown.
    pending = { ...request, hash: found.hash, accept: found.permissions }
    describe(found)
  } catch (error) {
    show('source-problem', error.message)
  }
}

function describe(found) {
  byId('found').textContent = `${found.name} ${found.version}`
  byId('found-facts').replaceChildren(
    ...facts([
      ['from', found.source],
      ['hash', found.hash],
      ['signed by', found.signed_by ?? 'nobody'],
      ['dependencies', found.dependencies.join(', ') || 'none'],
      ...(found.deprecated ? [['deprecated', found.deprecated]] : []),
    ]),
  )
  const added = new Set(found.added_permissions)
  byId('asks').replaceChildren(
    ...(found.permissions.length === 0 ? [element('li', {}, 'nothing')] : []),
    ...found.permissions.map((name) =>
      element('li', {}, element('code', {}, name), added.has(name) ? '' : ' (accepted before)'),
    ),
  )
  show('accept-problem')
  showStep('accept')
  // Not the button: a second Enter must not accept.
  byId('found').focus()
}

async function accept(onInstalled) {
  show('accept-problem')
  try {
    const answer = await call('POST', '/api/plugins/install', pending)
    byId('install').close()
    byId('source').value = ''
    await onInstalled(answer)
  } catch (error) {
    show('accept-problem', error.message)
  }
}
