import { element, facts } from '../../kit/kit.js'

const KINDS = ['routes', 'sockets', 'tools', 'hooks', 'jobs', 'channels', 'providers', 'pages', 'metrics']
const ACCESS = {
  unrestricted: ['unrestricted', 'It may use everything: it was put into the folder of plugins and declares nothing'],
  declared: ['declared permissions', 'It may use what it declares, and nothing else'],
}

/** A plugin with everything that is known of it. `actions` has what its buttons do, by their labels. */
export function pluginCard(plugin, actions) {
  const buttons = Object.entries(actions).map(([label, onclick]) =>
    element(
      'button',
      { type: 'button', 'aria-label': `${label} ${plugin.name}`, 'data-focus': `${label} ${plugin.name}`, onclick },
      label,
    ),
  )
  const title = element('h3', {}, plugin.name, ' ', element('span', { className: 'version' }, plugin.version))
  return element(
    'article',
    { className: 'card', 'data-plugin': plugin.name },
    element('div', { className: 'card-top' }, title, badges(plugin), element('div', { className: 'buttons' }, buttons)),
    plugin.error && element('p', { className: 'problem' }, plugin.error),
    details(plugin),
  )
}

const STATES = { loaded: 'good', failed: 'bad', loading: 'warn', unloading: 'warn' }

function badges({ state, version, access, isolation }) {
  const list = element(
    'span',
    { className: 'badges' },
    element('span', { className: `badge ${STATES[state] ?? ''}` }, state),
  )
  const [label, title] = ACCESS[access] ?? []
  // Without a version its definition was never read.
  if (label && version)
    list.append(element('span', { className: `badge ${access === 'unrestricted' ? 'warn' : ''}`, title }, label))
  if (isolation === 'worker') list.append(element('span', { className: 'badge' }, 'own process'))
  return list
}

function details({ name, path, reloads, requires, provides, permissions, access, isolation, registered }) {
  const counts = KINDS.filter((kind) => kind !== 'metrics' && registered[kind].length > 0).map((kind) =>
    registered[kind].length === 1 ? `1 ${kind.slice(0, -1)}` : `${registered[kind].length} ${kind}`,
  )
  const times = reloads === 0 ? '' : `, reloaded ${reloads === 1 ? 'once' : `${reloads} times`}`
  const summary = element(
    'summary',
    { 'data-focus': `about ${name}` },
    `${counts.join(', ') || 'nothing registered'}${times}`,
  )
  const box = element('details', { 'data-open': name }, summary)
  const rows = [
    ['folder', path ?? 'built in'],
    ['access', access],
    ['isolation', isolation === 'worker' ? 'a process of its own' : 'none: in the process of the daemon'],
    ['permissions', names(permissions)],
    ['requires', names(requires)],
    ['provides', names(provides)],
    ...KINDS.map((kind) => [kind, names(registered[kind], kind === 'pages')]),
  ]
  box.append(element('dl', { 'aria-label': `What ${name} is` }, ...facts(rows)))
  return box
}

function names(list, areLinks = false) {
  if (list.length === 0) return undefined
  const items = list.map((name) =>
    element('li', {}, areLinks ? element('a', { href: name }, name) : element('code', {}, name)),
  )
  return element('ul', {}, ...items)
}
