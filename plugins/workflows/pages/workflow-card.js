import { element } from '../../kit/kit.js'

const count = (number, word) => `${number} ${word}${number === 1 ? '' : 's'}`

/** A workflow of the list. `actions` has what its buttons do, by their labels. */
export function workflowCard({ id, name, description, steps, file, problem }, actions) {
  const buttons = Object.entries(actions).map(([label, onclick]) =>
    element(
      'button',
      { type: 'button', 'aria-label': `${label} ${name}`, 'data-focus': `${label} ${id}`, onclick },
      label,
    ),
  )
  const badges = element(
    'span',
    { className: 'badges' },
    element('span', { className: 'badge' }, count(steps, 'step')),
    file && element('span', { className: 'badge', title: 'Changed in this file only' }, `workflows/${file}`),
  )
  return element(
    'article',
    { className: 'card', 'data-workflow': id },
    element(
      'div',
      { className: 'card-top' },
      element('h3', {}, name),
      badges,
      element('div', { className: 'buttons' }, buttons),
    ),
    description && element('p', { className: 'hint' }, description),
    problem && element('p', { className: 'problem' }, `The file is wrong, and this is what it was before: ${problem}`),
  )
}

/** The steps of a definition, in their order. */
export function stepList(steps) {
  return element('ol', { className: 'steps' }, steps.map(stepItem))
}

function stepItem(step) {
  const who = step.type === 'agent' ? (step.agent_name ?? step.agent_id ?? '') : step.type
  const more = [
    step.mode,
    step.mode === 'conditional' && `when ${step.condition}`,
    step.mode === 'loop' && `${step.max_iterations} times at most${step.until ? `, until ${step.until}` : ''}`,
    step.error_mode === 'skip' && 'skipped when it fails',
    step.error_mode === 'retry' && `${step.max_retries} retries`,
    step.output_var && `to {{${step.output_var}}}`,
  ]
  return element(
    'li',
    {},
    element('strong', {}, step.name),
    ' ',
    element('span', { className: 'who' }, [who, ...more].filter(Boolean).join(', ')),
    element('pre', {}, step.prompt),
  )
}

/** What a run would do. */
export function rehearsalList({ steps, problems, estimated_cost_usd: cost }) {
  const items = steps.map((step) =>
    element(
      'li',
      {},
      element('strong', {}, step.name),
      ' ',
      element(
        'span',
        { className: 'who' },
        [
          step.text,
          step.model,
          step.most_calls > 1 && `${step.most_calls} times at most`,
          step.agent_name && step.type === 'agent' && dollars(step.estimated_cost_usd),
          step.needs_approval && 'waits for an approval',
          step.may_ask_for.length > 0 && `may ask for ${step.may_ask_for.join(', ')}`,
        ]
          .filter(Boolean)
          .join(', '),
      ),
    ),
  )
  return [
    problems.map((problem) => element('p', { className: 'problem warning' }, problem)),
    element('ol', { className: 'steps' }, items),
    element('p', { className: 'hint' }, `Estimated cost, with answers as long as they may be: ${dollars(cost)}`),
  ]
}

export const dollars = (usd) => (usd === null ? 'unknown cost' : `$${usd.toFixed(4)}`)
