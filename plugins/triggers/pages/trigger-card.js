import { element, facts, time } from '../../kit/kit.js'

const LOOKS = { done: 'good', failed: 'bad', cancelled: 'warn', held_back: 'warn', open: '' }

/** `agent_spawned scout-*`. */
export function patternText({ pattern }) {
  return Object.entries(pattern)
    .map(([name, fields]) => [name, ...Object.values(fields)].join(' '))
    .join(', ')
}

export function triggerCard(trigger, { agent, history, onEnable, onHistory, onRemove }) {
  const { id, enabled, reason, prompt_template: prompt, fire_count: count, max_fires: max, last_fired: last } = trigger
  const name = patternText(trigger)
  return element(
    'section',
    { className: 'card', 'aria-label': name, 'data-trigger': id },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, name),
      element('span', { className: `badge ${enabled ? 'good' : ''}` }, enabled ? 'enabled' : 'disabled'),
    ),
    element('p', { className: 'quote' }, prompt),
    !enabled && reason && element('p', { className: 'problem warning' }, reason),
    element(
      'dl',
      { className: 'times' },
      ...facts([
        ['agent', agent],
        ['fired', max === 0 ? String(count) : `${count} of ${max}`],
        ['last time', last && time(last)],
        ['workflow', trigger.workflow_id],
      ]),
    ),
    element(
      'div',
      { className: 'actions start' },
      button(`enable ${id}`, enabled ? 'Disable' : 'Enable', name, onEnable),
      button(`history ${id}`, history ? 'Hide history' : 'History', name, onHistory),
      button(`remove ${id}`, 'Remove', name, onRemove),
    ),
    history && historyList(history),
  )
}

function button(focus, text, name, onclick) {
  const label = `${text}: ${name}`
  return element('button', { type: 'button', 'data-focus': focus, 'aria-label': label, onclick }, text)
}

function historyList(firings) {
  if (firings.length === 0) return element('p', { className: 'hint' }, 'It has matched nothing yet.')
  return element(
    'ul',
    { className: 'history' },
    firings.map(({ event_at: at, state, reason, detail, text, result, error }) =>
      element(
        'li',
        {},
        time(at),
        ' ',
        element('span', { className: `badge ${LOOKS[state] ?? ''}` }, (reason ?? state).replaceAll('_', ' ')),
        element('p', { className: 'quote' }, text),
        element('p', { className: 'hint quote' }, detail ?? error ?? result ?? ''),
      ),
    ),
  )
}
