import { attempt, byId, call, element, livePage, openDialog, replace, show } from '../../kit/kit.js'
import { agentCard, cardFacts, taskRow, warnings } from './agent-card.js'

const POLL_MS = 5000
const TASKS = 20

const refresh = livePage({
  content: [byId('agents'), byId('tasks'), byId('bar')],
  submit: 'Show the agents',
  async load() {
    const [{ agents }, { tasks }] = await Promise.all([
      call('GET', '/api/a2a/agents'),
      call('GET', `/api/a2a/tasks?limit=${TASKS}`),
    ])
    render(agents, tasks)
  },
  words: ['a2a'],
  everyMs: POLL_MS,
})

function render(agents, tasks) {
  byId('count').textContent =
    agents.length === 0
      ? 'No agents elsewhere are known yet. “Find an agent” asks an address what it offers.'
      : `${agents.length} on other systems`
  replace(
    byId('agents'),
    agents.map((agent) =>
      agentCard(agent, {
        onTrust: () => trust(agent),
        onSend: () => send(agent),
        onRemove: () => remove(agent),
      }),
    ),
  )
  replace(
    byId('tasks'),
    tasks.length > 0 && element('h2', {}, 'Messages sent'),
    tasks.map((task) => {
      const path = `/api/a2a/tasks/${encodeURIComponent(task.id)}`
      return taskRow(task, {
        onRefresh: () => orSay(() => call('GET', `${path}/status`)),
        onCancel: () => orSay(() => call('POST', `${path}/cancel`)),
      })
    }),
  )
}

function discover() {
  const url = element('input', { type: 'url', required: true, placeholder: 'https://agents.example.com' })
  const name = element('input', { type: 'text', maxlength: '64' })
  openDialog({
    title: 'Find an agent',
    content: [
      element('label', {}, 'Address of the agent or of its card', url),
      element('label', {}, 'Name here (as in its card when empty)', name),
    ],
    confirm: 'Look',
    busy: 'Reading the card …',
    async submit() {
      const called = name.value.trim()
      const found = await call('POST', '/api/a2a/discover', { url: url.value.trim(), ...(called && { name: called }) })
      await refresh()
      show('notice', `“${found.agent.name}” ${found.status === 'trusted' ? 'is trusted' : 'waits for you'}.`)
    },
  })
}

/** The card that is shown is the one that is trusted: another one is refused. */
function trust(agent) {
  openDialog({
    title: `Trust ${agent.name}?`,
    content: [
      element('p', {}, 'Agents here may then send it messages, if their manifest lets them reach it.'),
      warnings(agent),
      cardFacts(agent),
    ],
    confirm: 'Trust',
    isDangerous: agent.warnings.length > 0 || agent.difference.length > 0,
    async submit() {
      await call('POST', `/api/a2a/agents/${agent.id}/approve`, { fingerprint: agent.fingerprint })
      await refresh()
      show('notice', `“${agent.name}” is trusted.`)
    },
  })
}

function send(agent) {
  const message = element('textarea', { rows: '4', required: true })
  openDialog({
    title: `Message to ${agent.name}`,
    content: [element('label', {}, 'Message', message)],
    confirm: 'Send',
    busy: 'Waiting for the answer …',
    async submit() {
      const task = await call('POST', '/api/a2a/send', { agent_id: agent.id, message: message.value })
      await refresh()
      show('notice', `“${agent.name}”: ${task.status}.`)
    },
  })
}

function remove(agent) {
  openDialog({
    title: `Forget ${agent.name}?`,
    content: element('p', {}, 'Its secret is deleted. Messages that were sent to it stay in the list.'),
    confirm: 'Remove',
    isDangerous: true,
    async submit() {
      await call('DELETE', `/api/a2a/agents/${agent.id}`)
      await refresh()
      show('notice', `“${agent.name}” is forgotten.`)
    },
  })
}

async function orSay(work) {
  await attempt(async () => {
    await work()
    await refresh()
  })
}
byId('discover').addEventListener('click', discover)
void refresh()
