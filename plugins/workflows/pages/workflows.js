import { byId, call, element, follow, livePage, openDialog, replace, show } from '../../kit/kit.js'
import { runCard, runPanel } from './run-view.js'
import { isActive } from './step-view.js'
import { rehearsalList, stepList, workflowCard } from './workflow-card.js'

/** What changes is logged or told; this is for what was missed. */
const POLL_MS = 30_000
const RETRY_MS = 2000
const PAGE = 20

let shown = PAGE

const refresh = livePage({
  content: [byId('content')],
  submit: 'Show the workflows',
  async load() {
    const [workflows, { files }, runs] = await Promise.all([
      call('GET', '/api/workflows'),
      call('GET', '/api/workflows/files'),
      call('GET', `/api/workflows/runs?limit=${shown}`),
    ])
    renderWorkflows(workflows, files)
    renderRuns(runs)
  },
  words: ['workflow'],
  feeds: ['/api/workflows/runs/events'],
  everyMs: POLL_MS,
  onOpen: openFragment,
})

function renderRuns(runs) {
  replace(
    byId('runs'),
    runs.length === 0 &&
      element('p', { className: 'hint' }, 'No workflow has run yet. “Run” of a workflow begins one.'),
    runs.map((run) => runCard(run, () => openRun(run.id))),
    runs.length >= shown &&
      element(
        'div',
        {},
        element('button', { type: 'button', 'data-focus': 'older', onclick: showOlder }, 'Older runs'),
      ),
  )
}
function showOlder() {
  shown += PAGE
  void refresh()
}

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

/** The run that is shown, with its attempts by their keys, and the index of the step that is looked at. */
let open = { id: '', run: undefined, attempts: new Map(), chosen: undefined }
/** Ends what follows it. */
let watching = new AbortController()

/** The fragment is the id of a run, and behind a slash the number of a step. */
const openRun = (id, step) => {
  location.hash = step === undefined ? id : `${id}/${step + 1}`
}
addEventListener('hashchange', openFragment)
function openFragment() {
  const [id = '', number] = location.hash.slice(1).split('/')
  const chosen = number === undefined ? undefined : Number(number) - 1
  if (id === open.id) {
    open.chosen = chosen
    drawRun()
    return
  }
  open = { id, run: undefined, attempts: new Map(), chosen }
  byId('run').hidden = true
  void watch(open)
}

/** Shows a run as it goes on. A connection that is lost is opened again. */
async function watch(shownRun) {
  watching.abort()
  watching = new AbortController()
  const { signal } = watching
  if (shownRun.id === '') return
  while (!signal.aborted) {
    try {
      await readRun(shownRun, signal)
    } catch (error) {
      if (signal.aborted) return
      show('problem', error.message)
      if (error.status >= 400 && error.status < 500) return
    }
    if (shownRun.run && !isActive(shownRun.run.state)) return
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
}

async function readRun(shownRun, signal) {
  const path = `/api/workflows/runs/${encodeURIComponent(shownRun.id)}`
  const isFirst = shownRun.run === undefined
  const { steps } = await call('GET', path)
  for await (const event of follow(`${path}/events`, signal)) {
    if (event.type === 'step') shownRun.attempts.set(event.step.key, event.step)
    else shownRun.run = { ...event.run, steps }
    // Attempts come before the state of their run.
    if (event.type === 'step') continue
    const opened = byId('run').hidden
    drawRun()
    if (opened && isFirst) byId('run').scrollIntoView({ block: 'start' })
  }
}

function drawRun() {
  const { id, run, attempts, chosen } = open
  byId('run').hidden = run === undefined
  if (!run) return
  const inOrder = [...attempts.values()].toSorted((one, other) => one.index - other.index)
  replace(
    byId('run'),
    runPanel(run, inOrder, {
      actions: actionsOf(run),
      answer,
      chosen: run.steps[chosen] && chosen,
      choose: (index) => openRun(id, index),
      runFrom: (step) => change(id, 'rerun', { step }),
    }),
  )
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

async function change(id, action, body) {
  show('problem')
  try {
    const { run_id: next } = await call('POST', `/api/workflows/runs/${id}/${action}`, body)
    openRun(next)
  } catch (error) {
    show('problem', error.message)
  }
}

function actionsOf({ id, state }) {
  const close = { Close: () => (location.hash = '') }
  const cancel = { Cancel: () => change(id, 'cancel') }
  if (state === 'Paused') return { Resume: () => change(id, 'resume'), ...cancel, ...close }
  if (isActive(state)) return { Pause: () => change(id, 'pause'), ...cancel, ...close }
  return { 'Run again': () => change(id, 'rerun', {}), ...close }
}
void refresh()
