import { call, element, openDialog, time } from '../../kit/kit.js'

const ROLES = { user: 'may talk to the bot', operator: 'may also approve what agents do, and change the model' }

/** The people who were let in by a code, and how many codes wait. */
export function peopleBox({ name, pairing: { people, pending_codes: codes }, accounts, finish }) {
  if (people.length === 0 && codes === 0) return undefined
  const waiting = codes === 1 ? '1 code waits to be used.' : `${codes} codes wait to be used.`
  return element(
    'section',
    { className: 'card', 'aria-label': 'Paired people' },
    element('h3', {}, 'Paired people'),
    codes > 0 && element('p', { className: 'hint' }, waiting),
    element(
      'ul',
      { className: 'people' },
      people.map((person) => row(name, person, accounts.length > 1, finish)),
    ),
  )
}

function row(
  name,
  { id, name: called, sender_id: sender, role, paired_at: at, account_id: account },
  isOfSeveral,
  finish,
) {
  const path = `/api/channels/${encodeURIComponent(name)}/pairing/${id}`
  const remove = () =>
    openDialog({
      title: `Take the access of ${called || sender} away?`,
      content: element('p', {}, 'The bot does not answer them any more, unless they are in the allow-list.'),
      confirm: 'Take it away',
      isDangerous: true,
      async submit() {
        await call('DELETE', path)
        await finish(`${called || sender} has no access any more.`)
      },
    })
  return element(
    'li',
    {},
    element(
      'div',
      {},
      element('strong', {}, called || sender),
      element('p', { className: 'hint' }, `${sender}, ${role}, `, time(at), isOfSeveral ? `, account ${account}` : ''),
    ),
    element(
      'button',
      { type: 'button', 'data-focus': `person ${id}`, 'aria-label': `Remove ${called || sender}`, onclick: remove },
      'Remove',
    ),
  )
}

/** Makes a code that lets a person in, and shows it once. */
export function askForCode({ name, title, id }, { finish }) {
  const role = element(
    'select',
    { id: 'role' },
    Object.entries(ROLES).map(([value, text]) => element('option', { value }, `${value}: ${text}`)),
  )
  let made
  openDialog({
    title: `Let a person in: ${title}`,
    content: [
      element('p', {}, 'They send the code to the bot in a direct chat. It works once, for a few minutes.'),
      element('label', { for: 'role' }, 'Role'),
      role,
    ],
    confirm: 'Make a code',
    async submit() {
      const path = `/api/channels/${encodeURIComponent(name)}/pairing`
      made = await call('POST', path, { account_id: id, role: role.value })
      await finish()
    },
    onClose() {
      if (made) showCode(made)
    },
  })
}

function showCode({ pairing_code: code, expires_at: expires }) {
  openDialog({
    title: 'The pairing code',
    content: [
      element('p', { className: 'code', role: 'status' }, code),
      element('p', { className: 'hint' }, 'Valid until ', time(expires), '. It is not shown again.'),
    ],
  })
}
