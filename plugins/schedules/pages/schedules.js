import { attempt, byId, call, element, livePage, openDialog, replace, show } from '../../kit/kit.js'
import { askForSchedule } from './new-schedule.js'
import { scheduleCard } from './schedule-card.js'

const POLL_MS = 5000

/** Histories that are open, by the id of their schedule. */
const histories = new Map()

const refresh = livePage({
  content: [byId('bar'), byId('schedules')],
  submit: 'Show the schedules',
  async load() {
    const [{ schedules }, agents] = await Promise.all([call('GET', '/api/schedules'), call('GET', '/api/agents')])
    for (const id of histories.keys()) histories.set(id, (await call('GET', `/api/schedules/${id}/slots`)).slots)
    render(schedules, agents)
  },
  words: ['schedule'],
  everyMs: POLL_MS,
})

function render(schedules, agents) {
  const names = new Map(agents.map(({ id, name }) => [id, name]))
  byId('count').textContent =
    schedules.length === 0
      ? 'There are no schedules yet. One asks an agent something at certain times.'
      : schedules.length === 1
        ? 'One schedule'
        : `${schedules.length} schedules`
  replace(
    byId('schedules'),
    schedules.map((schedule) =>
      scheduleCard(schedule, {
        agent: names.get(schedule.agent_id) ?? schedule.agent_id,
        history: histories.get(schedule.id),
        onRun: () => askToRun(schedule),
        onEnable: () => attempt(() => enable(schedule)),
        onHistory: () => attempt(() => toggleHistory(schedule)),
        onRemove: () => askToRemove(schedule),
      }),
    ),
  )
}

async function enable({ id, name, enabled }) {
  await call('PUT', `/api/schedules/${id}/enable`, { enabled: !enabled })
  await finish(`“${name}” is ${enabled ? 'disabled' : 'enabled'}.`)
}
async function toggleHistory({ id }) {
  if (!histories.delete(id)) histories.set(id, [])
  await refresh()
}
function askToRun({ id, name, prompt }) {
  const answer = element('p', { role: 'status', className: 'quote', hidden: true })
  openDialog({
    title: `Run “${name}” now?`,
    content: [element('p', { className: 'quote' }, prompt), answer],
    confirm: 'Run now',
    busy: 'Running …',
    cancel: 'Close',
    async submit() {
      show(answer)
      const { response } = await call('POST', `/api/schedules/${id}/run`)
      show(answer, response || '(no text)')
      await refresh()
      return false
    },
  })
}

function askToRemove({ id, name }) {
  openDialog({
    title: `Remove “${name}”?`,
    content: element('p', {}, 'It runs no more, and its history is deleted. A run that has begun ends.'),
    confirm: 'Remove',
    isDangerous: true,
    async submit() {
      await call('DELETE', `/api/schedules/${id}`)
      await finish(`“${name}” is removed.`)
    },
  })
}

/** Says what was done, and shows what it changed. */
async function finish(text) {
  await refresh()
  show('notice', text)
}

byId('add').addEventListener('click', () =>
  attempt(async () => askForSchedule(await call('GET', '/api/agents'), finish)),
)
void refresh()
