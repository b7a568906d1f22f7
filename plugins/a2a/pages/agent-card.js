import { element, facts, time } from '../../kit/kit.js'

const LOOKS = { completed: 'good', failed: 'bad', rejected: 'bad', cancelled: 'warn', inputRequired: 'warn' }

/** What an agent says of itself, for a person who decides whether to trust it. Its words are data, never markup. */
export function cardFacts(agent) {
  const { description, endpoints, provider, version, signature, security, skills } = agent
  return element(
    'dl',
    { className: 'card-facts' },
    ...facts([
      ['card', agent.url],
      ['messages go to', endpoints.map(({ url, protocol, version: of }) => `${url} (${protocol} ${of})`).join(', ')],
      ['description', description],
      ['maker', provider],
      ['version', version],
      ['signature', [signature.state, ...signature.keys].join(', ')],
      ['wants', security.join(', ')],
      ['skills', skills.map((skill) => `${skill.name}: ${skill.description}`).join('; ')],
      ['trusted', agent.trusted_at && time(agent.trusted_at)],
    ]),
  )
}
export function warnings(agent) {
  return [
    ...agent.warnings.map((text) => element('p', { className: 'problem warning' }, text)),
    ...agent.difference.map(({ field, before, after }) =>
      element(
        'p',
        { className: 'problem warning said' },
        `${field} changed from `,
        element('span', { className: 'before' }, JSON.stringify(before)),
        ` to ${JSON.stringify(after)}`,
      ),
    ),
  ]
}

export function agentCard(agent, { onTrust, onSend, onRemove }) {
  const { id, name, status, source } = agent
  const isTrusted = status === 'trusted'
  return element(
    'section',
    { className: 'card', 'aria-label': name, 'data-agent': id },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, name),
      element('span', { className: `badge ${isTrusted ? 'good' : 'warn'}` }, isTrusted ? 'trusted' : 'waits for you'),
      source === 'file' && element('span', { className: 'badge' }, 'configuration'),
    ),
    warnings(agent),
    cardFacts(agent),
    element(
      'div',
      { className: 'actions start' },
      isTrusted ? button(`send ${id}`, 'Send', name, onSend) : button(`trust ${id}`, 'Trust', name, onTrust),
      source !== 'file' && button(`remove ${id}`, 'Remove', name, onRemove),
    ),
  )
}

function button(focus, text, name, onclick) {
  return element('button', { type: 'button', 'data-focus': focus, 'aria-label': `${text}: ${name}`, onclick }, text)
}

export function taskRow(task, { onCancel, onRefresh }) {
  const { id, agent_name: agent, status, message, result, error, created_at: at } = task
  const isOpen = ['submitted', 'working', 'inputRequired', 'authRequired'].includes(status)
  return element(
    'section',
    { className: 'card', 'aria-label': `Message to ${agent}` },
    element(
      'div',
      { className: 'card-top' },
      element('h3', {}, agent),
      time(at),
      element('span', { className: `badge ${LOOKS[status] ?? ''}` }, status),
    ),
    element('p', { className: 'said hint' }, message),
    result && element('p', { className: 'said' }, result.parts.map(({ text }) => text).join('\n')),
    error && element('p', { className: 'problem' }, error),
    isOpen &&
      element(
        'div',
        { className: 'actions start' },
        button(`refresh ${id}`, 'Ask', agent, onRefresh),
        button(`cancel ${id}`, 'Cancel', agent, onCancel),
      ),
  )
}
