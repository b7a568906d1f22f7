import { attempt, byId, call, element, facts, livePage, openDialog, replace, show, time } from '../../kit/kit.js'

const POLL_MS = 5000
const refresh = livePage({
  content: [byId('summary'), byId('members')],
  submit: 'Show the cluster',
  async load() {
    render(await call('GET', '/api/cluster'))
  },
  words: ['cluster'],
  everyMs: POLL_MS,
})

function render({ shared, members }) {
  const count = members.length === 1 ? 'One daemon is' : `${members.length} daemons are`
  replace(byId('summary'), [
    `${count} on this database.`,
    shared
      ? ''
      : [
          ' Others can join on a PostgreSQL database only, which ',
          element('code', {}, 'database_url'),
          ' in config.toml names.',
        ],
  ])
  replace(byId('members'), members.map(memberCard))
}

function memberCard(member) {
  const { id, name, self, state, address, version, host_name: host, seen_secs: seen, started_at: started } = member
  const isActive = state === 'active'
  return element(
    'section',
    { className: 'card', 'aria-label': name, 'data-member': id },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, name),
      element('span', { className: `badge ${isActive ? 'good' : 'warn'}` }, state),
      self && element('span', { className: 'badge' }, 'this one'),
    ),
    element(
      'dl',
      { className: 'key' },
      ...facts([
        ['id', id],
        ['address', address ?? 'none yet'],
        ['machine', host],
        ['version', version],
        ['started', time(started)],
        ['last seen', `${seen} s ago`],
        [
          'works on',
          Object.entries(member.owned)
            .map(([what, count]) => `${count} ${what}`)
            .join(', '),
        ],
      ]),
    ),
    ...member.problems.map((problem) => element('p', { className: 'words problem' }, problem)),
    member.differences.length > 0 &&
      element('p', { className: 'words problem' }, `Differs from this one in ${member.differences.join(', ')}`),
    element(
      'div',
      { className: 'actions start' },
      isActive
        ? button(`drain ${id}`, 'Drain', name, () => confirmDrain(member))
        : button(`undrain ${id}`, 'Take work again', name, () => attempt(() => change(member, 'undrain'))),
    ),
  )
}

function button(focus, text, name, onclick) {
  return element('button', { type: 'button', 'data-focus': focus, 'aria-label': `${text}: ${name}`, onclick }, text)
}
function confirmDrain(member) {
  openDialog({
    title: `Drain ${member.name}?`,
    content: element('p', {}, 'It takes nothing more over; what it works on ends there or goes on in another daemon.'),
    confirm: 'Drain',
    submit: () => change(member, 'drain'),
  })
}
async function change({ id, name }, what) {
  await call('POST', `/api/cluster/members/${encodeURIComponent(id)}/${what}`)
  show('notice', what === 'drain' ? `“${name}” takes nothing more over.` : `“${name}” takes work again.`)
  await refresh()
}

void refresh()
