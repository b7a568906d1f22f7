import { attempt, byId, call, element, facts, livePage, openDialog, replace, show, time } from '../../kit/kit.js'

const POLL_MS = 5000
const refresh = livePage({
  content: [byId('network'), byId('peers')],
  submit: 'Show the peers',
  async load() {
    const [network, { peers }] = await Promise.all([call('GET', '/api/network/status'), call('GET', '/api/peers')])
    render(network, peers)
  },
  words: ['peers'],
  everyMs: POLL_MS,
})

function render(network, peers) {
  replace(byId('network'), networkFacts(network))
  replace(byId('peers'), peers.map(peerCard))
}

function networkFacts({ enabled, problem, node_id: id, listen_address: at, identity_fingerprint: key, dialing }) {
  if (!enabled)
    return [
      element(
        'p',
        {},
        'Networking is off, so agents of other daemons cannot be reached: write ',
        element('code', {}, 'enabled = true'),
        ' under ',
        element('code', {}, '[network]'),
        ' into config.toml.',
      ),
    ]
  if (problem !== null) return [element('p', { className: 'problem' }, `Networking is off: ${problem}`)]
  const missing = dialing.filter(({ state }) => state !== 'connected')
  return [
    element(
      'dl',
      { className: 'key' },
      ...facts([
        ['this node', id],
        ['listens at', at ?? 'no address'],
        ['key', key],
      ]),
    ),
    ...missing.map(({ address, problem: why, state }) =>
      element('p', { className: `words ${why === null ? 'hint' : 'problem'}` }, `${address}: ${why ?? state}`),
    ),
  ]
}

function peerCard(peer) {
  const { node_id: id, node_name: name, state, encrypted, address, fingerprint, agents, last_seen: seen } = peer
  const isLinked = state === 'connected'
  return element(
    'section',
    { className: 'card', 'aria-label': id, 'data-peer': id },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, id),
      element('span', { className: `badge ${isLinked ? 'good' : ''}` }, isLinked ? 'linked' : 'not linked'),
      isLinked && !encrypted && element('span', { className: 'badge warn' }, 'not encrypted'),
    ),
    element(
      'dl',
      { className: 'key' },
      ...facts([
        ['name', name],
        ['address', address],
        ['key', fingerprint],
        ['last seen', seen && time(seen)],
        ['agents', agents.map((agent) => agent.name).join(', ')],
      ]),
    ),
    element(
      'div',
      { className: 'actions start' },
      isLinked && button(`ping ${id}`, 'Ping', id, () => attempt(() => ping(id))),
      button(`unpin ${id}`, 'Forget key', id, () => confirmUnpin(peer)),
    ),
  )
}

function button(focus, text, name, onclick) {
  return element('button', { type: 'button', 'data-focus': focus, 'aria-label': `${text}: ${name}`, onclick }, text)
}

async function ping(id) {
  const { latency_ms: ms } = await call('POST', `/api/peers/${encodeURIComponent(id)}/ping`)
  show('notice', `“${id}” answered in ${ms} ms.`)
}
function confirmUnpin({ node_id: id, fingerprint }) {
  openDialog({
    title: `Forget the key of ${id}?`,
    content: element('p', {}, `Its key is ${fingerprint}. The next key it shows is the one it must have from then on.`),
    confirm: 'Forget key',
    isDangerous: true,
    async submit() {
      await call('DELETE', `/api/peers/${encodeURIComponent(id)}/pin`)
      await refresh()
      show('notice', `The key of “${id}” is forgotten.`)
    },
  })
}

void refresh()
