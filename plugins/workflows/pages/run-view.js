import { element, facts, time } from '../../kit/kit.js'
import { dollars } from './workflow-card.js'

const BADGES = { Completed: 'good', Failed: 'bad', Cancelled: 'bad', Paused: 'warn', Running: 'warn' }
const STEP_BADGES = { completed: 'good', failed: 'bad', running: 'warn', waiting: 'warn' }
export const isActive = (state) => ['Pending', 'Running', 'Paused'].includes(state)

/** A run of the list. */
export function runCard(run, open) {
  return element(
    'article',
    { className: 'card', 'data-run': run.id },
    element(
      'div',
      { className: 'card-top' },
      element('h3', {}, run.workflow_name),
      element('span', { className: 'badges' }, stateBadge(run.state)),
      element(
        'div',
        { className: 'buttons' },
        element(
          'button',
          { type: 'button', 'data-focus': `open ${run.id}`, onclick: open },
          isActive(run.state) ? 'Watch' : 'Show',
        ),
      ),
    ),
    element('p', { className: 'hint' }, time(run.created_at), ` ${run.cause}`),
    run.error && element('p', { className: 'problem' }, run.error),
  )
}
const stateBadge = (state) => element('span', { className: `badge ${BADGES[state] ?? ''}` }, state)

/**
 * A run with its steps as they are now. `actions` has what its buttons do, by their labels; `answer` takes the id of an
 * approval and what is done with it.
 */
export function runPanel(run, steps, actions, answer) {
  const newest = steps.findLast(({ output }) => output)
  const buttons = Object.entries(actions).map(([label, onclick]) =>
    element('button', { type: 'button', 'data-focus': `run ${label}`, onclick }, label),
  )
  const rows = [
    ['state', run.state],
    ['run', run.id],
    ['cause', run.cause],
    ['began', run.started_at && time(run.started_at)],
    ['ended', run.completed_at && time(run.completed_at)],
  ]
  return element(
    'article',
    { className: 'card' },
    element(
      'div',
      { className: 'card-top' },
      element('h3', {}, run.workflow_name),
      element('span', { className: 'badges' }, stateBadge(run.state)),
      element('div', { className: 'buttons' }, buttons),
    ),
    element('dl', { 'aria-label': 'About this run' }, facts(rows)),
    run.error && element('p', { className: 'problem' }, run.error),
    element(
      'ol',
      { className: 'steps', 'aria-label': 'Steps' },
      steps.map((step) => stepItem(step, step === newest, answer)),
    ),
  )
}

function stepItem(step, isNewest, answer) {
  const about = [
    step.agent_name ?? step.type,
    step.attempt > 1 && `attempt ${step.attempt}`,
    step.duration_ms !== null && `${(step.duration_ms / 1000).toFixed(1)} s`,
    step.input_tokens + step.output_tokens > 0 && `${step.input_tokens + step.output_tokens} tokens`,
    step.cost_usd !== null && step.cost_usd > 0 && dollars(step.cost_usd),
  ]
  const isAsking = step.state === 'waiting' && step.type === 'approval'
  const texts = [
    ['Prompt', isAsking ? '' : step.prompt],
    ['Output', step.output],
  ].filter(([, text]) => text)
  return element(
    'li',
    { 'data-step': step.step_name },
    element('strong', {}, step.step_name),
    ' ',
    element('span', { className: `badge ${STEP_BADGES[step.state] ?? ''}` }, step.state),
    ' ',
    element('span', { className: 'who' }, about.filter(Boolean).join(', ')),
    step.state === 'waiting' && waiting(step, answer),
    step.error && element('p', { className: 'problem' }, step.error),
    texts.map(([label, text]) =>
      element(
        'details',
        { 'data-open': `${step.key} ${label}`, open: label === 'Output' && isNewest },
        element('summary', { 'data-focus': `${step.key} ${label}` }, label),
        element('pre', {}, text),
      ),
    ),
  )
}

/** Others are called again at a time that says nothing to people. */
const WAITS = { tool: 'waits for an approval', workflow: 'waits for its run' }

function waiting({ type, key, prompt, step_name: name, waits_until: until }, answer) {
  if (type !== 'approval')
    return element('p', { className: 'hint' }, WAITS[type] ?? ['waits until ', until && time(until)])
  const button = (label, verb) =>
    element(
      'button',
      {
        type: 'button',
        'aria-label': `${label} ${name}`,
        'data-focus': `${key} ${verb}`,
        onclick: () => answer(key, verb),
      },
      label,
    )
  return element(
    'div',
    { className: 'question' },
    element('p', {}, prompt),
    element('div', { className: 'buttons' }, button('Approve', 'approve'), button('Reject', 'reject')),
  )
}
