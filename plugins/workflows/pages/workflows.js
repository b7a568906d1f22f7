import { byId, call, element, follow, livePage, openDialog, replace, show } from '../../kit/kit.js'
import { isActive, runCard, runPanel } from './run-view.js'
import { rehearsalList, stepList, workflowCard } from './workflow-card.js'

/** Runs are not logged: they are read again after this time. */
const POLL_MS = 4000
const RETRY_MS = 2000
const MAX_RUNS = 20

/** Ends what follows the run before. */
let watching = new AbortController()

const refresh = livePage({
  content: [byId('content')],
  submit: 'Show the workflows',
  async load() {
    const [workflows, { files }, runs] = await Promise.all([
      call('GET', '/api/workflows'),
      call('GET', '/api/workflows/files'),
      call('GET', `/api/workflows/runs?limit=${MAX_RUNS}`),
    ])
    renderWorkflows(workflows, files)
    replace(
      byId('runs'),
      runs.length === 0 && element('p', { className: 'hint' }, 'No workflow has run yet.'),
      runs.map((run) => runCard(run, () => openRun(run.id))),
    )
  },
  words: ['workflow'],
  everyMs: POLL_MS,
  onOpen() {
    if (location.hash.length > 1) void watch(location.hash.slice(1))
  },
})

function renderWorkflows(workflows, files) {
  const known = new Set(workflows.map(({ id }) => id))
  const broken = files.filter(({ workflow_id: id, problem }) => problem !== null && !known.has(id))
  replace(
    byId('workflows'),
    broken.map(({ file, problem }) => element('p', { className: 'problem' }, `workflows/${file}: ${problem}`)),
    workflows.length === 0 &&
      element(
        'p',
        { className: 'hint' },
        'None yet. ',
        element('code', {}, 'svc workflow create <file>'),
        ' makes one.',
      ),
    workflows.map((workflow) => {
      const actions = {
        Run: () => askRun(workflow),
        Rehearse: () => rehearse(workflow),
        Steps: () => showSteps(workflow),
      }
      return workflowCard(workflow, workflow.file === null ? { ...actions, Remove: () => remove(workflow) } : actions)
    }),
  )
}

function askRun({ id, name }) {
  const input = element('textarea', { id: 'input', rows: '4' })
  openDialog({
    title: `Run ${name}`,
    content: element('div', { className: 'field' }, element('label', { for: 'input' }, 'Input'), input),
    confirm: 'Run',
    busy: 'Starting …',
    async submit() {
      const { run_id: runId } = await call('POST', `/api/workflows/${id}/run?wait=false`, { input: input.value })
      openRun(runId)
      await refresh()
    },
  })
}
async function rehearse({ id, name }) {
  await inDialog(`What ${name} would do`, async () =>
    rehearsalList(await call('POST', `/api/workflows/${id}/dry-run`, {})),
  )
}
async function showSteps({ id, name }) {
  await inDialog(name, async () => stepList((await call('GET', `/api/workflows/${id}`)).steps))
}
async function inDialog(title, load) {
  show('problem')
  try {
    openDialog({ title, content: await load() })
  } catch (error) {
    show('problem', error.message)
  }
}
function remove({ id, name }) {
  openDialog({
    title: `Remove ${name}?`,
    content: 'Runs that began go on.',
    confirm: 'Remove',
    isDangerous: true,
    async submit() {
      await call('DELETE', `/api/workflows/${id}`)
      await refresh()
      show('notice', `${name} is removed.`)
    },
  })
}

const openRun = (id) => {
  if (location.hash === `#${id}`) void watch(id)
  else location.hash = id
}
addEventListener('hashchange', () => void watch(location.hash.slice(1)))

/** Shows a run as it goes on. A connection that is lost is opened again. */
async function watch(id) {
  watching.abort()
  watching = new AbortController()
  const { signal } = watching
  byId('run').hidden = id === ''
  if (id === '') return
  const found = { run: undefined, steps: new Map() }
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    try {
      await readRun(id, found, signal, isFirst)
    } catch (error) {
      if (signal.aborted) return
      show('problem', error.message)
      if (error.status >= 400 && error.status < 500) return
    }
    if (found.run && !isActive(found.run.state)) return
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
}

async function readRun(id, found, signal, isFirst) {
  for await (const event of follow(`/api/workflows/runs/${encodeURIComponent(id)}/events`, signal)) {
    if (event.type === 'step') found.steps.set(event.step.key, event.step)
    else found.run = event.run
    if (!found.run) continue
    replace(byId('run'), runPanel(found.run, [...found.steps.values()], actionsOf(found.run), answer))
    if (isFirst && event.type === 'run') byId('run').scrollIntoView({ block: 'start' })
  }
}

/** The step goes on, which its run shows. */
async function answer(id, verb) {
  show('problem')
  try {
    await call('POST', `/api/approvals/${id}/${verb}`, {})
  } catch (error) {
    show('problem', error.message)
  }
}

function actionsOf({ id, state }) {
  const act = (action) => async () => {
    show('problem')
    try {
      const { run_id: next } = await call(
        'POST',
        `/api/workflows/runs/${id}/${action}`,
        action === 'rerun' ? {} : undefined,
      )
      openRun(next)
      await refresh()
    } catch (error) {
      show('problem', error.message)
    }
  }
  const close = { Close: () => (location.hash = '') }
  if (state === 'Paused') return { Resume: act('resume'), Cancel: act('cancel'), ...close }
  if (isActive(state)) return { Pause: act('pause'), Cancel: act('cancel'), ...close }
  return { 'Run again': act('rerun'), ...close }
}
void refresh()
