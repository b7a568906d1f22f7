import { element, facts, time } from '../../kit/kit.js'

const LOOKS = { completed: 'good', in_progress: 'warn' }
const statusText = (status) => status.replace('_', ' ')

/** The goals as a list of cards, each with the list of its sub-goals. */
export function goalTree(goals, options) {
  const known = new Set(goals.map(({ id }) => id))
  const below = Map.groupBy(goals, ({ parent_id: parent }) => (known.has(parent) ? parent : null))
  const list = (parent) => {
    const found = below.get(parent)
    if (!found) return undefined
    const items = found.map((goal) => element('li', {}, goalCard(goal, options), list(goal.id)))
    return element('ul', { className: 'goals' }, items)
  }
  return list(null)
}

function goalCard(goal, { names, onEdit, onAdd, onRemove }) {
  const { id, title, description, status, progress, agent_id: agent, due_at: due } = goal
  const isLate = due !== null && Date.parse(due) < Date.now() && (status === 'pending' || status === 'in_progress')
  return element(
    'section',
    { className: 'card', 'aria-label': title, 'data-goal': id },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, title),
      element('span', { className: `badge ${LOOKS[status] ?? ''}` }, statusText(status)),
      isLate && element('span', { className: 'badge bad' }, 'late'),
    ),
    description && element('p', { className: 'quote' }, description),
    element(
      'div',
      { className: 'progress' },
      element('progress', { max: '100', value: String(progress), 'aria-label': `Progress of ${title}` }),
      element('span', { className: 'hint' }, `${progress}%`),
    ),
    element(
      'dl',
      {},
      ...facts([
        ['agent', agent && (names.get(agent) ?? agent)],
        ['due', due && time(due)],
      ]),
    ),
    element(
      'div',
      { className: 'actions start' },
      button(`add ${id}`, 'Add a part', title, () => onAdd(goal)),
      button(`edit ${id}`, 'Edit', title, () => onEdit(goal)),
      button(`remove ${id}`, 'Delete', title, () => onRemove(goal)),
    ),
  )
}

function button(focus, text, title, onclick) {
  const label = `${text}: ${title}`
  return element('button', { type: 'button', 'data-focus': focus, 'aria-label': label, onclick }, text)
}
