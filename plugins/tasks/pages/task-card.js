import { element, facts, time } from '../../kit/kit.js'

const LOOKS = { completed: 'good', failed: 'bad', cancelled: 'warn', in_progress: '', pending: '' }
/** Of longer texts a list has the beginning only. */
const LISTED_CHARS = 1000

const isOpen = ({ status }) => status === 'pending' || status === 'in_progress'

/** `full` is the task with its whole texts, once somebody asked for them. */
export function taskCard(task, { nameOf, full, onCancel, onRetry, onFull }) {
  const { id, title, status, attempts, created_at: posted, completed_at: ended } = task
  const { description, result } = full ?? task
  const isCut = !full && [description, result].some((text) => text !== null && text.length >= LISTED_CHARS)
  return element(
    'section',
    { className: 'card', 'aria-label': title, 'data-task': id },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, title),
      element('span', { className: `badge ${LOOKS[status]}` }, status.replace('_', ' ')),
    ),
    description && element('p', { className: 'quote' }, description),
    result && element('p', { className: `quote ${status === 'failed' ? 'problem' : 'hint'}` }, result),
    element(
      'dl',
      {},
      ...facts([
        ['for', task.assigned_to ? nameOf(task.assigned_to) : 'any agent'],
        ['posted by', nameOf(task.created_by)],
        ['worked on by', task.claimed_by && nameOf(task.claimed_by)],
        ['attempts', attempts > 1 && String(attempts)],
        ['posted', time(posted)],
        ['ended', ended && time(ended)],
      ]),
    ),
    element(
      'div',
      { className: 'actions start' },
      isOpen(task) && button(`cancel ${id}`, 'Cancel', title, onCancel),
      !isOpen(task) && button(`retry ${id}`, 'Try again', title, onRetry),
      isCut && button(`full ${id}`, 'Whole text', title, onFull),
    ),
  )
}

function button(focus, text, title, onclick) {
  return element('button', { type: 'button', 'data-focus': focus, 'aria-label': `${text}: ${title}`, onclick }, text)
}
