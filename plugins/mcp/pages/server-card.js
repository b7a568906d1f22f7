import { element, facts, time } from '../../kit/kit.js'

const LOOKS = { connected: 'good', error: 'bad', login_required: 'warn' }
const STATES = { login_required: 'wants a login' }

/** A server with its tools; those of the configuration file are changed there. */
export function serverCard(server, { changed, onApprove, onRestart, onLog, onLogin, onRemove }) {
  const { name, error, origin, tools } = server
  const state = isIdle(server) ? 'idle' : server.state
  return element(
    'section',
    { className: 'card', 'aria-label': name, 'data-server': name },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, name),
      element('span', { className: `badge ${LOOKS[state] ?? ''}` }, STATES[state] ?? state),
    ),
    error && element('p', { className: `problem words ${state === 'login_required' ? 'warning' : ''}` }, error),
    element('dl', { className: 'words' }, ...facts(factsOf(server))),
    changed && changeBlock(name, changed, onApprove),
    tools.length > 0 && toolList(name, tools),
    element(
      'div',
      { className: 'actions start' },
      state === 'login_required' && button('Log in', name, onLogin),
      button('Restart', name, onRestart),
      button('Log', name, onLog),
      origin === 'api' && button('Remove', name, onRemove),
    ),
  )
}

/** It is started with its first use, or stopped because nobody used it: nothing is wrong. */
const isIdle = ({ state, error, lazy, transport }) =>
  state === 'disconnected' && error === null && lazy && transport === 'stdio'

function factsOf({
  command,
  args,
  url,
  trust,
  network,
  origin,
  calls,
  failed_calls: failed,
  restarts,
  connected_since: since,
}) {
  return [
    [url === null ? 'program' : 'address', url ?? [command, ...args].join(' ')],
    ['runs', url === null ? trust : ''],
    ['network', network.join(', ')],
    ['from', origin === 'file' ? 'the configuration file' : origin],
    ['calls', calls === 0 ? '' : `${calls}, ${failed} failed`],
    ['restarts', restarts === 0 ? '' : String(restarts)],
    ['connected', since && time(since)],
  ]
}

function toolList(name, tools) {
  const unusable = tools.filter(({ usable }) => !usable).length
  return element(
    'details',
    { 'data-open': `tools ${name}` },
    element(
      'summary',
      { 'data-focus': `tools ${name}` },
      `${tools.length === 1 ? 'One tool' : `${tools.length} tools`}${unusable === 0 ? '' : `, ${unusable} not usable`}`,
    ),
    element('ul', { className: 'tools' }, ...tools.map(toolItem)),
  )
}

/** What tools said before and say now, as far as it is another thing. */
function changeBlock(name, approval, onApprove) {
  const { action_summary: summary, payload } = approval
  const rows = (payload?.changes ?? []).flatMap(({ tool, before, after }) =>
    Object.keys({ ...before, ...after })
      .map((key) => [key, textOf(before[key]), textOf(after[key])])
      .filter(([, was, is]) => was !== is)
      .map(([key, was, is]) =>
        element(
          'li',
          { className: 'words' },
          element('strong', {}, `${tool}: ${key}`),
          element('div', {}, element('del', {}, was)),
          element('div', {}, element('ins', {}, is)),
        ),
      ),
  )
  return element(
    'div',
    { className: 'problem warning' },
    element('p', { className: 'words' }, summary),
    element('ul', { className: 'tools' }, ...rows),
    button('Approve the change', name, () => onApprove(approval)),
  )
}
const textOf = (value) => (typeof value === 'string' ? value : value === undefined ? 'nothing' : JSON.stringify(value))

function toolItem({ name, description, risk, usable, reason }) {
  return element(
    'li',
    { className: 'words' },
    element('strong', {}, name),
    ' ',
    element('span', { className: 'badge' }, risk),
    ' ',
    !usable && element('span', { className: 'badge warn' }, reason ?? 'not usable'),
    element('div', { className: 'hint' }, description),
  )
}

function button(text, name, onclick) {
  return element(
    'button',
    { type: 'button', 'data-focus': `${text} ${name}`, 'aria-label': `${text}: ${name}`, onclick },
    text,
  )
}
