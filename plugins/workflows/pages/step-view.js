import { count, element, facts, time } from '../../kit/kit.js'
import { dollars } from './workflow-card.js'

export const LOOKS = { completed: 'good', failed: 'bad', cancelled: 'bad', running: 'warn', waiting: 'warn' }
export const isActive = (state) => ['Pending', 'Running', 'Paused'].includes(state)

/** The indexes of the steps by when they run: consecutive ones of the mode `fan_out` run side by side. */
export function ranksOf(steps) {
  const ranks = []
  for (const [index, { mode }] of steps.entries()) {
    if (mode === 'fan_out' && steps[index - 1]?.mode === 'fan_out') ranks.at(-1).push(index)
    else ranks.push([index])
  }
  return ranks
}

/** How each step of a run stands, by its newest attempt: `{ state, text, hasBegun }`. */
export function stepStates(run, attempts) {
  const begun = new Set(attempts.map(({ index }) => index))
  const ranks = ranksOf(run.steps)
  const newestRank = ranks.findLastIndex((rank) => rank.some((index) => begun.has(index)))
  const states = []
  for (const [at, rank] of ranks.entries())
    for (const index of rank)
      states[index] = begun.has(index)
        ? begunState(
            run.steps[index],
            attempts.filter((attempt) => attempt.index === index),
          )
        : { text: textOfOther(run, at < newestRank), hasBegun: false }
  return states
}
function textOfOther(run, wasPassed) {
  if (wasPassed || run.state === 'Completed') return 'left out'
  return isActive(run.state) ? 'to come' : 'not reached'
}
function begunState({ mode }, attempts) {
  const { state, attempt, duration_ms: ms } = attempts.at(-1)
  const rounds = new Set(attempts.map(({ step_name: name }) => name)).size
  const parts = [state, mode === 'loop' && `round ${rounds}`, attempt > 1 && `attempt ${attempt}`, durationOf(ms)]
  return { state, text: parts.filter(Boolean).join(', '), hasBegun: true }
}
const durationOf = (ms) => ms !== null && (ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`)

/** All steps in their order, with each of their attempts; those to come too. `answer` takes what a person decides. */
export function stepList(run, attempts, { chosen, answer }) {
  const newest = attempts.findLast(({ output }) => output)
  const states = stepStates(run, attempts)
  const items = run.steps.flatMap((step, index) => {
    if (chosen !== undefined && index !== chosen) return []
    const own = attempts.filter((attempt) => attempt.index === index)
    if (own.length === 0) return [unreached(step, index, states[index])]
    return own.map((attempt) =>
      attemptItem(attempt, {
        isOpen: attempt === newest || chosen !== undefined,
        isFull: chosen !== undefined,
        answer,
      }),
    )
  })
  return element('ol', { className: 'steps', 'aria-label': 'Steps', start: chosen !== undefined && chosen + 1 }, items)
}

function unreached({ name, prompt }, index, { text }) {
  return element(
    'li',
    { 'data-step': name, value: index + 1 },
    element('strong', {}, name),
    ' ',
    element('span', { className: 'badge' }, text),
    prompt && foldable({ key: name, label: 'Prompt', text: prompt }),
  )
}

function attemptItem(step, { isOpen, isFull, answer }) {
  const about = [
    step.agent_name ?? step.type,
    step.attempt > 1 && `attempt ${step.attempt}`,
    durationOf(step.duration_ms),
    step.input_tokens + step.output_tokens > 0 && `${count(step.input_tokens + step.output_tokens)} tokens`,
    step.cost_usd !== null && step.cost_usd > 0 && dollars(step.cost_usd),
  ]
  const isAsking = step.state === 'waiting' && step.type === 'approval'
  const texts = [
    ['Input', step.input !== step.prompt && step.input],
    ['Prompt', !isAsking && step.prompt],
    ['Output', step.output],
  ].filter(([, text]) => text)
  const times = [
    ['began', time(step.started_at)],
    ['ended', step.completed_at && time(step.completed_at)],
  ]
  return element(
    'li',
    { 'data-step': step.step_name, value: step.index + 1 },
    element('strong', {}, step.step_name),
    ' ',
    element('span', { className: `badge ${LOOKS[step.state] ?? ''}` }, step.state),
    ' ',
    element('span', { className: 'who' }, about.filter(Boolean).join(', ')),
    isFull && element('dl', { 'aria-label': `Times of ${step.step_name}` }, facts(times)),
    step.state === 'waiting' && waiting(step, answer),
    step.error && element('p', { className: 'problem' }, step.error),
    texts.map(([label, text]) => foldable({ key: step.key, label, text, isOpen: label === 'Output' && isOpen })),
  )
}

function foldable({ key, label, text, isOpen = false }) {
  return element(
    'details',
    { 'data-open': `${key} ${label}`, open: isOpen },
    element('summary', { 'data-focus': `${key} ${label}` }, label),
    element('pre', {}, text),
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
