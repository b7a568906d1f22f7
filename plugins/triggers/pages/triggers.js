import { attempt, byId, call, element, livePage, openDialog, replace, show } from '../../kit/kit.js'
import { askForTrigger } from './new-trigger.js'
import { patternText, triggerCard } from './trigger-card.js'

const POLL_MS = 5000

/** Histories that are open, by the id of their trigger. */
const histories = new Map()

const refresh = livePage({
  content: [byId('bar'), byId('triggers')],
  submit: 'Show the triggers',
  async load() {
    const [triggers, agents] = await Promise.all([call('GET', '/api/triggers'), call('GET', '/api/agents')])
    const known = new Set(triggers.map(({ id }) => id))
    for (const id of histories.keys()) {
      if (known.has(id)) histories.set(id, (await call('GET', `/api/triggers/${id}/history`)).firings)
      else histories.delete(id)
    }
    render(triggers, agents)
  },
  words: ['trigger'],
  everyMs: POLL_MS,
})

function render(triggers, agents) {
  const names = new Map(agents.map(({ id, name }) => [id, name]))
  byId('count').textContent =
    triggers.length === 0
      ? 'There are no triggers yet. One asks an agent something when something happens.'
      : `${triggers.length} that wait for something to happen`
  replace(
    byId('triggers'),
    triggers.map((trigger) => {
      const asked = trigger.target_agent_id ?? trigger.agent_id
      return triggerCard(trigger, {
        agent: names.get(asked) ?? asked,
        history: histories.get(trigger.id),
        onEnable: () => attempt(() => enable(trigger)),
        onHistory: () => attempt(() => toggleHistory(trigger)),
        onRemove: () => askToRemove(trigger),
      })
    }),
  )
}

async function enable(trigger) {
  const { id, enabled } = trigger
  await call('PUT', `/api/triggers/${id}`, { enabled: !enabled })
  await finish(`“${patternText(trigger)}” is ${enabled ? 'disabled' : 'enabled'}.`)
}
async function toggleHistory({ id }) {
  if (!histories.delete(id)) histories.set(id, [])
  await refresh()
}

function askToRemove(trigger) {
  const name = patternText(trigger)
  openDialog({
    title: `Remove “${name}”?`,
    content: element('p', {}, 'It fires no more, and its history is deleted.'),
    confirm: 'Remove',
    isDangerous: true,
    async submit() {
      await call('DELETE', `/api/triggers/${trigger.id}`)
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
  attempt(async () => askForTrigger(await call('GET', '/api/agents'), finish)),
)
void refresh()
