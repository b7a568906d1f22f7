import { element, facts, time } from '../../kit/kit.js'

/** Badge of a schedule: its text, and how it looks. */
function badgeOf({ enabled, last_status: last }) {
  if (!enabled) return ['disabled', '']
  if (last === null) return ['waiting', '']
  return last === 'ok' ? ['ok', 'good'] : ['failed', 'bad']
}
/** Somebody wanted it, which is nothing to warn of. */
const BY_HAND = 'disabled by hand'
const LOOKS = { done: 'good', failed: 'bad', cancelled: 'warn', skipped: 'warn', open: '' }

function whenText({ cron, schedule, tz }) {
  if (cron !== null) return `${cron} (${tz})`
  if (schedule.kind === 'at') return ['once, ', time(schedule.at)]
  return `every ${durationText(schedule.every_secs)}`
}
function durationText(secs) {
  const parts = [
    [Math.floor(secs / 3600), 'h'],
    [Math.floor(secs / 60) % 60, 'min'],
    [secs % 60, 's'],
  ]
  return parts
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ')
}
/** What it does where it asks no agent. */
function actionText({ action }) {
  if (action.kind === 'workflow') return 'runs a workflow with this input'
  return action.kind === 'system_event' && 'tells plugins this event'
}
function targetText({ kind, channel, to, url }) {
  if (kind === 'channel') return `${channel}: ${to}`
  return kind === 'webhook' ? url : 'the chat in which the agent answered last'
}

export function scheduleCard(schedule, { agent, history, onRun, onEnable, onHistory, onRemove }) {
  const {
    id,
    name,
    enabled,
    prompt,
    reason,
    last_status: last,
    next_run: next,
    last_run: ran,
    delivery_targets: targets,
  } = schedule
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
    prompt && element('p', { className: 'quote' }, prompt),
    !enabled && reason && element('p', { className: BY_HAND === reason ? 'hint' : 'problem warning' }, reason),
    last && last !== 'ok' && element('p', { className: 'problem' }, last),
    element(
      'dl',
      { className: 'times' },
      ...facts([
        ['agent', agent],
        ['action', actionText(schedule)],
        ['when', whenText(schedule)],
        ['result to', targets.length > 0 && targets.map(targetText).join(', ')],
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
      button(`remove ${id}`, 'Remove', name, onRemove),
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
