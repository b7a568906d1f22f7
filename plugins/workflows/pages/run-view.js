import { element, facts, time } from '../../kit/kit.js'
import { runGraph } from './run-graph.js'
import { isActive, stepList } from './step-view.js'

const BADGES = { Completed: 'good', Failed: 'bad', Cancelled: 'bad', Paused: 'warn', Running: 'warn' }

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
 * approval and what is done with it, `choose` the index of a step, or nothing for all, and `runFrom` the name of one.
 */
export function runPanel(run, attempts, { actions, answer, chosen, choose, runFrom }) {
  const buttons = Object.entries(actions).map(([label, onclick]) =>
    element('button', { type: 'button', 'data-focus': `run ${label}`, onclick }, label),
  )
  const rows = [
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
      'div',
      { className: 'run-body' },
      runGraph(run, attempts, { chosen, choose }),
      element(
        'div',
        { className: 'run-steps' },
        stepsTop(run, chosen, { choose, runFrom }),
        stepList(run, attempts, { chosen, answer }),
      ),
    ),
  )
}

/** What the list beside the graph shows: one step, or all. */
function stepsTop(run, chosen, { choose, runFrom }) {
  if (chosen === undefined) return element('h4', {}, 'All steps')
  const { name } = run.steps[chosen]
  return element(
    'div',
    { className: 'card-top' },
    element('h4', {}, `Step ${chosen + 1} of ${run.steps.length}`),
    element(
      'div',
      { className: 'buttons' },
      !isActive(run.state) &&
        element(
          'button',
          { type: 'button', 'data-focus': 'run from', onclick: () => runFrom(name) },
          'Run again from here',
        ),
      element('button', { type: 'button', 'data-focus': 'all steps', onclick: () => choose() }, 'All steps'),
    ),
  )
}
