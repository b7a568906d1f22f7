import { byId, call, element, facts, livePage, openDialog, replace, show } from '../../kit/kit.js'

const POLL_MS = 10_000

const refresh = livePage({
  content: [byId('skills'), byId('bar')],
  submit: 'Show the skills',
  load: async () => render(await call('GET', '/api/skills')),
  words: ['skill'],
  everyMs: POLL_MS,
})

function render({ skills, problems }) {
  const own = skills.filter(({ bundled }) => !bundled).length
  byId('count').textContent = `${skills.length} skills, ${own} of them installed here`
  replace(byId('skills'), [...problems.map(problemCard), ...skills.map(skillCard)])
}

function problemCard({ name, path, error }) {
  return element(
    'section',
    { className: 'card', 'aria-label': name },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, name),
      element('span', { className: 'badge bad' }, 'not used'),
    ),
    element('p', { className: 'quote' }, error),
    element('dl', {}, ...facts([['folder', path]])),
  )
}

function skillCard(skill) {
  const { name, version, description, runtime, bundled, enabled, tags } = skill
  return element(
    'section',
    { className: 'card', 'aria-label': name },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, name),
      element('span', { className: 'badge' }, bundled ? 'comes with svc' : 'installed'),
      !enabled && element('span', { className: 'badge warn' }, 'disabled'),
    ),
    element('p', { className: 'quote' }, description),
    element(
      'dl',
      {},
      ...facts([
        ['version', version],
        ['runtime', runtime.replace('_', ' ')],
        ['tags', tags.join(', ')],
      ]),
    ),
    element(
      'div',
      { className: 'actions start' },
      button('Show', name, () => openDetail(name)),
      !bundled && button('Uninstall', name, () => askToRemove(name)),
    ),
  )
}

async function openDetail(name) {
  const { text, permissions, tools, files } = await call('GET', `/api/skills/${encodeURIComponent(name)}`)
  openDialog({
    title: name,
    content: [
      element(
        'dl',
        {},
        ...facts([
          ['may use', permissions.join(', ') || 'nothing'],
          ['tools', tools.map((tool) => tool.name).join(', ')],
          ['files', files.join(', ')],
        ]),
      ),
      element('pre', {}, text),
    ],
    confirm: 'Close',
    submit: async () => undefined,
  })
}

/** Asks for a source, then shows what it is and what it may use. */
function askForSource() {
  const source = element('input', { maxlength: '4096', placeholder: '/srv/skills/one, https://… or hub:slug' })
  const update = element('input', { type: 'checkbox' })
  openDialog({
    title: 'Install a skill',
    content: [
      element('label', { className: 'field' }, 'Folder, archive, address or hub:slug', source),
      element('label', {}, update, ' Replace it when it is installed'),
    ],
    confirm: 'Look at it',
    async submit() {
      const request = { source: source.value, update: update.checked }
      const found = await call('POST', '/api/skills/install', { ...request, dry_run: true })
      // The dialog of the source closes first.
      setTimeout(() => askToAccept(request, found))
    },
  })
}
/** Asks for words, then shows what the hub has for them. */
function askForWords() {
  const words = element('input', { maxlength: '200', placeholder: 'release notes' })
  openDialog({
    title: 'Search ClawHub',
    content: element('label', { className: 'field' }, 'What it is for', words),
    confirm: 'Search',
    async submit() {
      const found = await call('GET', `/api/clawhub/search?q=${encodeURIComponent(words.value)}`)
      setTimeout(() => showFound(words.value, found.items))
    },
  })
}
function showFound(words, items) {
  const choices = element(
    'select',
    { size: String(Math.min(Math.max(items.length, 2), 10)) },
    items.map(({ slug, owner, name, version, description }) =>
      element('option', { value: owner ? `@${owner}/${slug}` : slug }, `${name} ${version}: ${description}`),
    ),
  )
  openDialog({
    title: `ClawHub: “${words}”`,
    content:
      items.length === 0
        ? element('p', {}, 'The hub has none.')
        : element('label', { className: 'field' }, 'Skills', choices),
    confirm: items.length === 0 ? 'Close' : 'Look at it',
    async submit() {
      if (items.length === 0) return
      if (choices.value === '') throw new Error('Choose a skill first.')
      const request = { source: `hub:${choices.value}`, update: false }
      const found = await call('POST', '/api/skills/install', { ...request, dry_run: true })
      setTimeout(() => askToAccept(request, found))
    },
  })
}
function askToAccept(request, { skill, version, description, permissions, warnings, sha256, signed_by: signer }) {
  openDialog({
    title: `Install “${skill}” ${version}?`,
    content: [
      element('p', { className: 'quote' }, description),
      element(
        'dl',
        {},
        ...facts([
          ['may use', permissions.join(', ') || 'nothing'],
          ['signed by', signer ?? 'nobody'],
          ['sha256', sha256],
        ]),
      ),
      element(
        'ul',
        {},
        warnings.map(({ severity, message }) => element('li', {}, `${severity}: ${message}`)),
      ),
    ],
    confirm: 'Install',
    async submit() {
      const answer = await call('POST', '/api/skills/install', { ...request, sha256, accept: permissions })
      await finish(`“${answer.skill}” ${answer.version} is ${answer.status}.`)
    },
  })
}

function askToRemove(name) {
  openDialog({
    title: `Uninstall “${name}”?`,
    content: element('p', {}, 'Agents lose it with their next turn.'),
    confirm: 'Uninstall',
    isDangerous: true,
    async submit() {
      await call('POST', '/api/skills/uninstall', { name })
      await finish(`“${name}” is uninstalled.`)
    },
  })
}

function button(text, name, onclick) {
  return element(
    'button',
    { type: 'button', 'data-focus': `${text} ${name}`, 'aria-label': `${text}: ${name}`, onclick },
    text,
  )
}
/** Says what was done, and shows what it changed. */
async function finish(text) {
  await refresh()
  show('notice', text)
}
byId('install').addEventListener('click', askForSource)
byId('search').addEventListener('click', askForWords)
void refresh()
