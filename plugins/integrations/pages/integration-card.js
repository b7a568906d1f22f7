import { element, facts, time } from '../../kit/kit.js'

const LOOKS = { ready: 'good', error: 'bad', setup: 'warn', disabled: '', available: '' }

/** One that was added, with its health. */
export function installedCard(integration, { health, onReconnect, onRemove, onLogin, onSwitch }) {
  const { id, name, icon, description, status, error, tool_count: tools, installed_at: added } = integration
  return card(
    { id, name, icon, status },
    description && element('p', { className: 'words' }, description),
    error && element('p', { className: `problem ${status === 'setup' ? 'warning' : ''}` }, error),
    element(
      'dl',
      {},
      ...facts([
        ['id', id],
        ['tools', String(tools)],
        ['added', time(added)],
        ['last checked', health?.last_ok && time(health.last_ok)],
        ['failed checks', health?.consecutive_failures ? String(health.consecutive_failures) : ''],
        ['attempts to connect', health?.reconnect_attempts ? String(health.reconnect_attempts) : ''],
      ]),
    ),
    element(
      'div',
      { className: 'actions start' },
      status === 'setup' && button('login', 'Sign in', { id, name }, onLogin),
      status !== 'disabled' && button('reconnect', 'Reconnect', { id, name }, onReconnect),
      button('switch', status === 'disabled' ? 'Switch on' : 'Switch off', { id, name }, onSwitch),
      button('remove', 'Remove', { id, name }, onRemove),
    ),
  )
}

/** An entry of the catalogue. */
export function catalogueCard(entry, { onAdd }) {
  const { id, name, icon, description, status, category } = entry
  return card(
    { id: `catalogue ${id}`, name, icon, status },
    element('p', { className: 'words' }, description),
    element('p', { className: 'hint' }, category),
    element('div', { className: 'actions start' }, button('add', 'Add', { id, name }, onAdd)),
  )
}

function card({ id, name, icon, status }, ...content) {
  return element(
    'section',
    { className: 'card', 'aria-label': name, 'data-integration': id },
    element(
      'div',
      { className: 'card-top' },
      element('h3', {}, icon && element('span', { 'aria-hidden': 'true' }, `${icon} `), name),
      element('span', { className: `badge ${LOOKS[status] ?? ''}` }, status),
    ),
    ...content,
  )
}

function button(action, text, { id, name }, onclick) {
  return element(
    'button',
    { type: 'button', 'data-focus': `${action} ${id}`, 'aria-label': `${text}: ${name}`, onclick },
    text,
  )
}
