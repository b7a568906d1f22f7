import { element, table, time } from '../../kit/kit.js'

const number = (title, cell) => ({ title, isNumber: true, cell: (lane) => String(cell(lane)) })
const COLUMNS = [
  { title: 'Lane', cell: ({ lane }) => lane },
  number('Waiting', ({ depth }) => depth),
  number('Oldest', ({ oldest_secs: secs }) => (secs === 0 ? '' : `${secs} s`)),
  number('Running', ({ running, capacity }) => `${running} of ${capacity}`),
  number('Done a minute', ({ throughput }) => throughput),
  number('Done in an hour', ({ done_last_hour: done }) => done),
  number('Failed in an hour', ({ failed_last_hour: failed }) => failed),
  number('Dead', ({ dead }) => dead),
]

/** The lanes of the queue, and the jobs that were given up. */
export function queueView({ lanes }, dead, { onRetry, onRetryAll }) {
  return [
    element('h2', {}, 'Queue'),
    table({
      caption: 'Lanes of the queue',
      columns: COLUMNS,
      rows: lanes,
      empty: 'Nothing was put into the queue yet.',
    }),
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
