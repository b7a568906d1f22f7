import { byId, call, element, livePage, openDialog, replace, show } from '../../kit/kit.js'
import { goalTree } from './tree.js'

const POLL_MS = 5000
const PAGE = 1000
const STATUSES = ['pending', 'in_progress', 'completed', 'cancelled']

/** Agents by their ids, for the choice in the form. */
let names = new Map()

const refresh = livePage({
  content: [byId('goals'), byId('bar')],
  submit: 'Show the goals',
  async load() {
    const [goals, agents] = await Promise.all([allGoals(), call('GET', '/api/agents')])
    names = new Map(agents.map(({ id, name }) => [id, name]))
    render(goals)
  },
  words: ['goal'],
  everyMs: POLL_MS,
})

async function allGoals() {
  const goals = []
  for (;;) {
    const { items, total } = await call('GET', `/api/goals?limit=${PAGE}&offset=${goals.length}`)
    goals.push(...items)
    if (items.length === 0 || goals.length >= total) return goals
  }
}

function render(goals) {
  const open = goals.filter(({ status }) => status === 'pending' || status === 'in_progress').length
  byId('count').textContent =
    goals.length === 0
      ? 'There are no goals yet. “New goal” sets one; agents report how far it is.'
      : `${open} of ${goals.length} are open`
  replace(
    byId('goals'),
    goalTree(goals, {
      names,
      onAdd: (parent) => openForm({ title: `A part of “${parent.title}”`, parent }),
      onEdit: (goal) => openForm({ title: `Edit “${goal.title}”`, goal }),
      onRemove: askToRemove,
    }),
  )
}

/** The form of a new goal, or of one that there is. */
function openForm({ title, goal, parent }) {
  const fields = {
    title: element('input', { maxlength: '256', value: goal?.title ?? '' }),
    description: element('textarea', { maxlength: '4096' }, goal?.description ?? ''),
    status: choice(
      STATUSES.map((status) => [status, status.replace('_', ' ')]),
      goal?.status ?? 'pending',
    ),
    progress: element('input', { type: 'number', min: '0', max: '100', value: String(goal?.progress ?? 0) }),
    agent: choice([['', 'nobody in particular'], ...names], goal?.agent_id ?? parent?.agent_id ?? ''),
    due: element('input', { type: 'datetime-local', value: toLocal(goal?.due_at) }),
  }
  openDialog({
    title,
    content: [
      labelled('Title', fields.title),
      labelled('Description', fields.description),
      labelled('Status', fields.status),
      labelled('Progress in percent', fields.progress),
      labelled('Agent', fields.agent),
      labelled('Due', fields.due),
    ],
    confirm: goal ? 'Save' : 'Create',
    async submit() {
      const body = toBody(fields)
      if (goal) await call('PUT', `/api/goals/${goal.id}`, changesOf(goal, body))
      else await call('POST', '/api/goals', { ...body, parent_id: parent?.id ?? null })
      await finish(`“${body.title}” is ${goal ? 'saved' : 'created'}.`)
    },
  })
}
function toBody({ title, description, status, progress, agent, due }) {
  return {
    title: title.value,
    description: description.value,
    status: status.value,
    progress: Number(progress.value),
    agent_id: agent.value || null,
    due_at: fromLocal(due.value),
  }
}
/** What the form changed: an agent may have changed the rest meanwhile. The field of the time has no seconds. */
function changesOf(goal, body) {
  const before = { ...goal, due_at: fromLocal(toLocal(goal.due_at)) }
  return Object.fromEntries(Object.entries(body).filter(([name, value]) => value !== before[name]))
}

function askToRemove({ id, title }) {
  openDialog({
    title: `Delete “${title}”?`,
    content: element('p', {}, 'Everything below it is deleted too.'),
    confirm: 'Delete',
    isDangerous: true,
    async submit() {
      const { deleted } = await call('DELETE', `/api/goals/${id}`)
      await finish(deleted === 1 ? `“${title}” is deleted.` : `“${title}” is deleted, with ${deleted - 1} below it.`)
    },
  })
}

const labelled = (text, field) => element('label', { className: 'field' }, text, field)
function choice(options, value) {
  const select = element(
    'select',
    {},
    options.map(([id, text]) => element('option', { value: id }, text)),
  )
  select.value = value
  return select
}
/** A time of the API as the browser's field for times has it, in local time. */
function toLocal(iso) {
  if (!iso) return ''
  const date = new Date(iso)
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
const fromLocal = (text) => (text ? new Date(text).toISOString() : null)

/** Says what was done, and shows what it changed. */
async function finish(text) {
  await refresh()
  show('notice', text)
}
byId('add').addEventListener('click', () => openForm({ title: 'New goal' }))
void refresh()
