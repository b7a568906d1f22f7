import { byId, call, element, facts, isThisBrowser, livePage, openDialog, replace, show, time } from '../../kit/kit.js'

const POLL_MS = 10_000
const refresh = livePage({
  content: [byId('summary'), byId('devices')],
  submit: 'Show the devices',
  async load() {
    try {
      render(await call('GET', '/api/pairing/devices'))
    } catch (error) {
      // It is switched off, which is no failure.
      if (error.status !== 404) throw error
      replace(byId('devices'), element('p', { className: 'hint' }, error.message))
    }
  },
  words: ['audit', 'device'],
  everyMs: POLL_MS,
})

function render({ devices }) {
  const count = devices.length === 1 ? 'One device is paired.' : `${devices.length || 'No'} devices are paired.`
  replace(byId('summary'), [button('Pair a device', '', askForCode), element('span', {}, count)])
  replace(
    byId('devices'),
    devices.length === 0 &&
      element(
        'p',
        { className: 'hint' },
        'A device, such as a phone or a browser that is to be remembered, gets a key of its own, which can be taken back.',
      ),
    devices.map(deviceCard),
  )
}

function deviceCard(device) {
  const { device_id: id, display_name: name, platform, paired_at: paired, last_seen: seen } = device
  return element(
    'section',
    { className: 'card', 'aria-label': name, 'data-device': id },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, name),
      platform && element('span', { className: 'badge' }, platform),
      isThisBrowser(id) && element('span', { className: 'badge good' }, 'this browser'),
    ),
    element(
      'dl',
      { className: 'key' },
      ...facts([
        ['id', id],
        ['paired', time(paired)],
        ['last seen', time(seen)],
      ]),
    ),
    element(
      'div',
      { className: 'actions start' },
      button('Remove', name, () => askToRemove(device)),
    ),
  )
}

async function askForCode() {
  try {
    const { pairing_code: code, qr_uri: link, expires_at: expires } = await call('POST', '/api/pairing/request')
    openDialog({
      title: 'Pair a device',
      content: [
        element('p', { className: 'code' }, code),
        element('p', {}, 'Enter it on the device before ', time(expires), '. Whoever enters it first gets a key.'),
        element('p', { className: 'key' }, link),
      ],
    })
  } catch (error) {
    show('problem', error.message)
  }
}

function askToRemove({ device_id: id, display_name: name }) {
  const stop = element('input', { type: 'checkbox' })
  openDialog({
    title: `Remove “${name}”?`,
    content: [
      element('p', {}, 'Its key opens nothing from then on, and its open connections end at once.'),
      element(
        'label',
        { className: 'check' },
        stop,
        'End what it made as well: its agents, schedules, triggers, tasks, runs of workflows and turns.',
      ),
    ],
    confirm: 'Remove',
    isDangerous: true,
    async submit() {
      const query = stop.checked ? '?effects=stop' : ''
      const { stopped, staying } = await call('DELETE', `/api/pairing/devices/${encodeURIComponent(id)}${query}`)
      await refresh()
      show('notice', [`“${name}” is removed.`, said('Ended', stopped), said('Still there', staying)].join(''))
    },
  })
}
const said = (what, found) =>
  found.length === 0 ? '' : ` ${what}: ${found.map(({ kind, name, id }) => `${kind} ${name ?? id}`).join(', ')}.`

function button(text, name, onclick) {
  return element(
    'button',
    { type: 'button', 'data-focus': `${text} ${name}`, 'aria-label': name === '' ? text : `${text}: ${name}`, onclick },
    text,
  )
}

void refresh()
