import { byId, call, element, facts, livePage, openDialog, replace, show } from '../../kit/kit.js'

const POLL_MS = 10_000
const TITLES = { openclaw: 'OpenClaw', openfang: 'OpenFang', librefang: 'LibreFang' }
const PARTS = [
  ['import_agents', 'Agents, with their files, values and memories'],
  ['import_keys', 'Keys of providers, into the vault'],
  ['import_skills', 'Skills'],
  ['import_sessions', 'Conversations'],
  ['import_channels', 'Channels, disabled'],
  ['import_automation', 'Workflows, and schedules and triggers, disabled'],
]

let others = []
let detected
const refresh = livePage({
  content: [byId('bar'), byId('sources')],
  submit: 'Look for other systems',
  waiting: 'Looking for homes of other systems …',
  load,
  words: ['data_migrated'],
  everyMs: POLL_MS,
})
byId('other').addEventListener('click', askForFolder)

async function load() {
  const [sources, status] = await Promise.all([detect(), call('GET', '/api/migrate/status')])
  const found = [...sources, ...others.filter(({ path }) => !sources.some((source) => source.path === path))]
  byId('count').textContent = `${countOf(found)}${wordsOf(status)}`
  replace(byId('sources'), found.map(sourceCard))
}
/** Once: it reads all that the homes hold, and they do not change. */
async function detect() {
  detected ??= (await call('GET', '/api/migrate/detect')).sources
  return detected
}
function countOf(found) {
  if (found.length === 0) return 'No home of OpenClaw, OpenFang or LibreFang is found for the user of the daemon.'
  return found.length === 1 ? 'One home is found.' : `${found.length} homes are found.`
}
function wordsOf({ status, done, total, error }) {
  if (status === 'running') return ` A move is under way: ${done} of ${total}.`
  if (status === 'failed') return ` The last move failed: ${error}. Start it again: it goes on where it ended.`
  return status === 'completed' ? ' The last move is complete.' : ''
}

function sourceCard({ type, path, version, agents_found: agents, skills_found: skills }) {
  const title = `${TITLES[type]} · ${path}`
  return element(
    'section',
    { className: 'card', 'aria-label': title },
    element('h2', {}, TITLES[type]),
    element(
      'dl',
      {},
      ...facts([
        ['folder', path],
        ['format', version],
        ['agents', String(agents)],
        ['skills', String(skills)],
      ]),
    ),
    element(
      'div',
      { className: 'actions' },
      element('button', { type: 'button', onclick: () => openForm(title, path, true) }, 'Show what would come over'),
      element(
        'button',
        { type: 'button', className: 'primary', onclick: () => openForm(title, path, false) },
        'Move in',
      ),
    ),
  )
}

function openForm(title, path, isDryRun) {
  const boxes = PARTS.map(([key, text]) => {
    const box = element('input', { type: 'checkbox', name: key, checked: true })
    return { key, box, label: element('label', {}, box, ` ${text}`) }
  })
  openDialog({
    title,
    content: [
      element(
        'p',
        {},
        'Nothing here is overwritten, nothing in the folder is changed, and what came over stays as it is.',
      ),
      ...boxes.map(({ label }) => element('p', {}, label)),
    ],
    confirm: isDryRun ? 'Show' : 'Move in',
    async submit() {
      const parts = Object.fromEntries(boxes.map(({ key, box }) => [key, box.checked]))
      const answer = await call('POST', '/api/migrate', { source: path, dry_run: isDryRun, ...parts })
      show('report', answer.report_markdown)
      show(
        'notice',
        isDryRun ? 'This would come over.' : `${answer.imported_count} came over. The report is ${answer.reports[0]}.`,
      )
      await refresh()
    },
  })
}

function askForFolder() {
  const field = element('input', { maxlength: '4096', placeholder: '/home/you/.openclaw', autocomplete: 'off' })
  openDialog({
    title: 'Another folder',
    content: element('p', {}, element('label', {}, 'Path on the machine of the daemon ', field)),
    confirm: 'Look',
    async submit() {
      const { type, path, version, agents, skills } = await call('POST', '/api/migrate/scan', {
        path: field.value.trim(),
      })
      others = [...others, { type, path, version, agents_found: agents.length, skills_found: skills.length }]
      await refresh()
    },
  })
}

void refresh()
