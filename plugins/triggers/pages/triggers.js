import { attempt, byId, call, livePage, replace, show } from '../../kit/kit.js'
import { patternText, triggerCard } from './trigger-card.js'

const POLL_MS = 5000

let drawn = ''
/** Histories that are open, by the id of their trigger. */
const histories = new Map()

const refresh = livePage({
  content: [byId('triggers')],
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
  // What has not changed is not drawn again: a text that is being read or selected stays.
  const now = JSON.stringify([triggers, agents.map(({ id, name }) => [id, name]), [...histories]])
  if (now === drawn) return
  drawn = now
  const names = new Map(agents.map(({ id, name }) => [id, name]))
  byId('count').textContent =
    triggers.length === 0 ? 'There are no triggers yet.' : `${triggers.length} that wait for something to happen`
  replace(
    byId('triggers'),
    triggers.map((trigger) => {
      const asked = trigger.target_agent_id ?? trigger.agent_id
      return triggerCard(trigger, {
        agent: names.get(asked) ?? asked,
        history: histories.get(trigger.id),
        onEnable: () => attempt(() => enable(trigger)),
        onHistory: () => attempt(() => toggleHistory(trigger)),
      })
    }),
  )
}

async function enable(trigger) {
  const { id, enabled } = trigger
  await call('PUT', `/api/triggers/${id}`, { enabled: !enabled })
  await refresh()
  show('notice', `“${patternText(trigger)}” is ${enabled ? 'disabled' : 'enabled'}.`)
}
async function toggleHistory({ id }) {
  if (!histories.delete(id)) histories.set(id, [])
  await refresh()
}

void refresh()
