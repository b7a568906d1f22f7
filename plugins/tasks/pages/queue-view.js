import { element, time } from '../../kit/kit.js'

const COLUMNS = [
  ['waiting', ({ depth }) => depth],
  ['oldest', ({ oldest_secs: secs }) => (secs === 0 ? '' : `${secs} s`)],
  ['running', ({ running, capacity }) => `${running} of ${capacity}`],
  ['done/min', ({ throughput }) => throughput],
  ['done/h', ({ done_last_hour: done }) => done],
  ['failed/h', ({ failed_last_hour: failed }) => failed],
  ['dead', ({ dead }) => dead],
]

/** The lanes of the queue, and the jobs that were given up. */
export function queueView({ lanes }, dead, { onRetry, onRetryAll }) {
  return [
    element('h2', {}, 'Queue'),
    element(
      'div',
      { className: 'card lanes', role: 'region', 'aria-label': 'Lanes of the queue', tabindex: '0' },
      element(
        'table',
        {},
        element(
          'thead',
          {},
          element(
            'tr',
            {},
            ...['lane', ...COLUMNS.map(([name]) => name)].map((name) => element('th', { scope: 'col' }, name)),
          ),
        ),
        element('tbody', {}, ...lanes.map(laneRow)),
      ),
    ),
    dead.length > 0 && element('h3', {}, 'Jobs that were given up'),
    dead.length > 1 &&
      element(
        'div',
        { className: 'buttons' },
        element(
          'button',
          { type: 'button', 'data-focus': 'retry all', onclick: onRetryAll },
          `Run all ${dead.length} again`,
        ),
      ),
    dead.length > 0 && element('div', { className: 'dead-jobs' }, ...dead.map((job) => deadJob(job, onRetry))),
  ]
}

function laneRow(lane) {
  return element(
    'tr',
    {},
    element('th', { scope: 'row' }, lane.lane),
    ...COLUMNS.map(([, read]) => element('td', {}, String(read(lane)))),
  )
}

function deadJob(job, onRetry) {
  const { lane, id, failures, settled_at: settled, error } = job
  return element(
    'section',
    { className: 'card', 'aria-label': `${lane} ${id}` },
    element(
      'div',
      { className: 'card-top' },
      element('h3', {}, lane),
      element('span', { className: 'badge bad' }, failures === 0 ? 'dead' : `${failures} failures`),
    ),
    element('p', { className: 'quote' }, error ?? ''),
    element('p', { className: 'hint' }, id, settled && [' · ', time(settled)]),
    element(
      'div',
      { className: 'actions start' },
      element(
        'button',
        {
          type: 'button',
          'data-focus': `job ${lane} ${id}`,
          'aria-label': `Run again: ${lane} ${id}`,
          onclick: () => onRetry(job),
        },
        'Run again',
      ),
    ),
  )
}
