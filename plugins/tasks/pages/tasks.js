import { attempt, byId, call, element, keepInAddress, livePage, openDialog, replace, show } from '../../kit/kit.js'
import { queueView } from './queue-view.js'
import { taskCard } from './task-card.js'

const POLL_MS = 5000
const PAGE = 50

let limit = PAGE
/** Agents by their ids, for the choice in the form. */
let names = new Map()
/** Tasks with their whole texts, by id: those somebody asked for. */
const full = new Map()

const refresh = livePage({
  content: [byId('tasks'), byId('queue'), byId('bar')],
  submit: 'Show the tasks',
  async load() {
    const status = byId('status').value
    const query = new URLSearchParams({ limit: String(limit), ...(status && { status }) })
    const [list, agents, queue] = await Promise.all([
      call('GET', `/api/tasks?${query}`),
      call('GET', '/api/agents'),
      call('GET', '/api/queue/status'),
    ])
    names = new Map(agents.map(({ id, name }) => [id, name]))
    render(list, queue, await deadJobs(queue))
  },
  words: ['task', 'job', 'queue'],
  everyMs: POLL_MS,
})

async function deadJobs({ lanes }) {
  const withDead = lanes.filter(({ dead }) => dead > 0)
  const lists = await Promise.all(
    withDead.map(({ lane }) => call('GET', `/api/queue/${encodeURIComponent(lane)}/jobs?state=dead`)),
  )
  return lists.flatMap(({ jobs }) => jobs)
}

function render({ tasks, total }, queue, dead) {
  byId('count').textContent = total === 0 ? 'There are no such tasks.' : `${tasks.length} of ${total}`
  const nameOf = (id) => names.get(id) ?? id
  replace(
    byId('tasks'),
    tasks.map((task) =>
      taskCard(task, {
        nameOf,
        full: full.get(`${task.id} ${task.revision}`),
        onCancel: () => attempt(() => change(task, 'cancel', 'is cancelled')),
        onRetry: () => attempt(() => change(task, 'retry', 'waits again')),
        onFull: () => attempt(() => readFull(task)),
      }),
    ),
    tasks.length < total &&
      element('button', { type: 'button', 'data-focus': 'more', onclick: more }, `More (${total - tasks.length})`),
  )
  replace(
    byId('queue'),
    queueView(queue, dead, {
      onRetry: (job) => attempt(() => retryJobs([job])),
      onRetryAll: () => attempt(() => retryJobs(dead)),
    }),
  )
}

async function more() {
  limit += PAGE
  await refresh()
}
async function readFull({ id }) {
  const task = await call('GET', `/api/tasks/${id}`)
  full.set(`${id} ${task.revision}`, task)
  await refresh()
}
async function change({ id, title }, action, done) {
  await call('POST', `/api/tasks/${id}/${action}`)
  await finish(`“${title}” ${done}.`)
}
async function retryJobs(jobs) {
  for (const { lane, id } of jobs)
    await call('POST', `/api/queue/${encodeURIComponent(lane)}/jobs/${encodeURIComponent(id)}/retry`)
  await finish(jobs.length === 1 ? 'The job runs again.' : `${jobs.length} jobs run again.`)
}

function openForm() {
  const title = element('input', { maxlength: '512' })
  const description = element('textarea', {})
  const agent = element(
    'select',
    {},
    [['', 'any agent that claims it'], ...names].map(([id, name]) => element('option', { value: id }, name)),
  )
  openDialog({
    title: 'New task',
    content: [labelled('Title', title), labelled('Description', description), labelled('Agent', agent)],
    confirm: 'Post',
    async submit() {
      const body = { title: title.value, description: description.value, assigned_to: agent.value || null }
      await call('POST', '/api/tasks', body)
      await finish(`“${title.value}” is posted.`)
    },
  })
}
const labelled = (text, field) => element('label', { className: 'field' }, text, field)

/** Says what was done, and shows what it changed. */
async function finish(text) {
  await refresh()
  show('notice', text)
}

byId('add').addEventListener('click', openForm)
keepInAddress(byId('status'))
byId('status').addEventListener('change', () => {
  limit = PAGE
  void refresh()
})
void refresh()
