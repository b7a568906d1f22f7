import { element, facts, time } from '../../kit/kit.js'

/** Badge of a schedule: its text, and how it looks. */
function badgeOf({ enabled, last_status: last }) {
  if (!enabled) return ['disabled', '']
  if (last === null) return ['waiting', '']
  return last === 'ok' ? ['ok', 'good'] : ['failed', 'bad']
}
const LOOKS = { done: 'good', failed: 'bad', cancelled: 'warn', skipped: 'warn', open: '' }

function whenText({ cron, schedule, tz }) {
  if (cron !== null) return `${cron} (${tz})`
  return schedule.kind === 'every' ? `every ${schedule.every_secs} seconds` : `once, at ${schedule.at}`
}

export function scheduleCard(schedule, { agent, history, onRun, onEnable, onHistory }) {
  const { id, name, enabled, prompt, reason, last_status: last, next_run: next, last_run: ran } = schedule
  const [text, look] = badgeOf(schedule)
  return element(
    'section',
    { className: 'card', 'aria-label': name, 'data-schedule': id },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, name),
      element('span', { className: `badge ${look}` }, text),
    ),
    element('p', { className: 'quote' }, prompt),
    !enabled && reason && element('p', { className: 'problem warning' }, reason),
    last && last !== 'ok' && element('p', { className: 'problem' }, last),
    element(
      'dl',
      { className: 'times' },
      ...facts([
        ['agent', agent],
        ['when', whenText(schedule)],
        ['next time', next && time(next)],
        ['last run', ran && time(ran)],
      ]),
    ),
    element(
      'div',
      { className: 'actions start' },
      button(`run ${id}`, 'Run now', name, onRun, !enabled),
      button(`enable ${id}`, enabled ? 'Disable' : 'Enable', name, onEnable),
      button(`history ${id}`, history ? 'Hide history' : 'History', name, onHistory),
    ),
    history && historyList(history),
  )
}

function button(focus, text, name, onclick, disabled = false) {
  const label = `${text}: ${name}`
  return element('button', { type: 'button', 'data-focus': focus, 'aria-label': label, disabled, onclick }, text)
}

function historyList(slots) {
  if (slots.length === 0) return element('p', { className: 'hint' }, 'It has not run yet.')
  return element(
    'ul',
    { className: 'history' },
    slots.map(({ slot, kind, state, reason, detail, late_ms: late, result, error }) =>
      element(
        'li',
        {},
        time(slot),
        ' ',
        element('span', { className: `badge ${LOOKS[state] ?? ''}` }, reason ? reason.replaceAll('_', ' ') : state),
        kind === 'manual' && ' by hand',
        late >= 1000 && ` ${Math.round(late / 1000)} s late`,
        element('p', { className: 'hint quote' }, detail ?? error ?? result ?? ''),
      ),
    ),
  )
}
