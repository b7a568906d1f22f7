import { call, element, facts, time } from '../../kit/kit.js'
import { askToDisable, askToRemove, askToTest, enable } from './account-dialogs.js'
import { openForm } from './form.js'
import { messageBox } from './messages.js'
import { askForCode, peopleBox } from './pairing.js'
import { signIn } from './sign-in.js'
import { stateBadge, withCode } from './state.js'

/** All that the panel of a channel shows. */
export async function readChannel(name) {
  const path = `/api/channels/${encodeURIComponent(name)}`
  const [view, pairing, dead, parked] = await Promise.all([
    call('GET', path),
    call('GET', `${path}/pairing`),
    call('GET', `${path}/outbox`),
    call('GET', `${path}/inbox`),
  ])
  return { view, pairing, dead: dead.messages, parked: parked.messages }
}

export function channelPanel({ view, pairing, dead, parked }, { finish }) {
  const { name, account_list: accounts, available } = view
  return [
    element('a', { href: '#', className: 'back' }, '← All channels'),
    heading(view),
    !available && unavailableText(view),
    available && accounts.length === 0 && setup(view, finish),
    ...accounts.map((account) => accountCard(view, account, finish)),
    available && accounts.length > 0 && addAccount(view, finish),
    accounts.length > 0 && peopleBox({ name, pairing, accounts, finish }),
    messageBox({ name, box: 'outbox', messages: dead, finish }),
    messageBox({ name, box: 'inbox', messages: parked, finish }),
    accounts.length > 0 && addressBox(view),
  ]
}

function heading({ display_name: title, description, icon, state, available, account_list: accounts }) {
  return element(
    'div',
    { className: 'panel-top' },
    element('span', { className: 'icon', 'aria-hidden': 'true' }, icon),
    element('div', {}, element('h2', {}, title), element('p', { className: 'hint' }, description)),
    accounts.length === 0 && stateBadge(state, available),
  )
}

function unavailableText({ display_name: title, status }) {
  const text =
    status.state === 'retired'
      ? `${status.last_error}.`
      : `svc has no adapter for ${title} yet. A plugin can bring one: see the page Plugins.`
  return element('p', { className: 'card' }, text)
}

function setup(view, finish) {
  const { display_name: title, setup_steps: steps, setup_time: duration, difficulty, config_template: template } = view
  return element(
    'section',
    { className: 'card', 'aria-label': 'Set up' },
    element('h3', {}, `Connect ${title}`),
    element('p', { className: 'hint' }, `${difficulty}, ${duration}`),
    element(
      'ol',
      { className: 'steps' },
      steps.map((step) => element('li', {}, step)),
    ),
    element(
      'div',
      { className: 'actions start' },
      element(
        'button',
        {
          className: 'primary',
          type: 'button',
          'data-focus': 'configure',
          onclick: () => void openForm({ view, finish }),
        },
        `Set up ${title}`,
      ),
    ),
    element(
      'details',
      { 'data-open': 'template' },
      element('summary', { 'data-focus': 'template' }, 'Or write it into config.toml'),
      element('pre', {}, template),
    ),
  )
}

function accountCard(view, account, finish) {
  const { account_id: id, status, source } = account
  const label = id === 'default' ? 'Account' : `Account ${id}`
  return element(
    'section',
    { className: 'card', 'aria-label': label, 'data-account': id },
    element('div', { className: 'card-top' }, element('h3', {}, label), stateBadge(status.state, view.available)),
    status.last_error && element('p', { className: 'problem' }, status.last_error),
    status.help && element('p', { className: 'hint' }, 'What to do: ', withCode(status.help)),
    status.warnings.map((text) => element('p', { className: 'problem warning' }, withCode(text))),
    element('dl', {}, ...facts(statusRows(status, source, account))),
    element('div', { className: 'actions start' }, buttons(view, account, finish)),
  )
}

function statusRows(status, source, { has_token: hasSecrets }) {
  const { messages_received: received, messages_sent: sent, failed, outbox, dead_letters: dead } = status
  const at = (iso) => iso && time(iso)
  return [
    ['configured in', source === 'file' ? 'config.toml' : 'this page or the API'],
    ['secrets', hasSecrets ? 'all stored' : 'missing'],
    ['connected since', at(status.started_at)],
    ['next attempt', at(status.next_retry_at)],
    ['last message', at(status.last_message_at)],
    ['messages', `${received} received, ${sent} sent, ${failed} refused by the platform`],
    ['standby', status.state === 'standby' && 'another daemon on the same data is connected'],
    ['to be sent', `${outbox} waiting, ${dead} dead ${dead === 1 ? 'letter' : 'letters'}`],
  ]
}

function buttons(view, account, finish) {
  const { name, available } = view
  const { account_id: id, enabled, source, status } = account
  // Without its package there is nothing to sign in with: the error says so.
  const hasSignIn = account.sign_in && status.state !== 'missing_dependency'
  const target = { name, title: view.display_name, id }
  const isFile = source === 'file'
  const actions = [
    available && hasSignIn && enabled && ['Sign in', () => void signIn(target, { finish })],
    available && [isFile ? 'Secrets' : 'Configure', () => void openForm({ view, id, finish })],
    available && ['Test', () => askToTest(target)],
    available && enabled && ['Reconnect', () => void enable(target, { finish, done: 'connects again' })],
    available && ['Pairing code', () => askForCode(target, { finish })],
    enabled
      ? ['Disable', () => askToDisable(target, { finish })]
      : available && ['Enable', () => void enable(target, { finish, done: 'is enabled' })],
    !isFile && ['Remove', () => askToRemove(target, { finish })],
  ]
  return actions.filter(Boolean).map(([label, onclick]) =>
    element(
      'button',
      {
        type: 'button',
        'data-focus': `${label} ${id}`,
        'aria-label': `${label}${id === 'default' ? '' : ` (${id})`}`,
        onclick,
      },
      label,
    ),
  )
}

function addAccount(view, finish) {
  return element(
    'button',
    { type: 'button', 'data-focus': 'add', onclick: () => void openForm({ view, isFurther: true, finish }) },
    'Add another account',
  )
}

function addressBox({ webhook_path: path }) {
  return element(
    'p',
    { className: 'hint' },
    'If the platform sends its messages to the daemon, their address ends in ',
    element('code', {}, path),
    '.',
  )
}
