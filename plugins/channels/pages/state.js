import { element } from '../../kit/kit.js'

/** State of an account: its text, and how its badge looks. */
const STATES = {
  connected: ['connected', 'good'],
  connecting: ['connecting', 'warn'],
  backing_off: ['not connected', 'bad'],
  standby: ['standby', 'warn'],
  needs_login: ['needs a sign-in', 'warn'],
  misconfigured: ['configured wrongly', 'bad'],
  missing_dependency: ['a package is missing', 'bad'],
  error: ['failed', 'bad'],
  disabled: ['disabled', ''],
  retired: ['the platform closed', ''],
  not_configured: ['not configured', ''],
}
/** States that somebody should do something about. */
export const isProblem = (state) => ['bad', 'warn'].includes(STATES[state]?.[1]) && state !== 'connecting'

export function stateBadge(state, isAvailable = true) {
  const [text, look] = isAvailable || state === 'retired' ? (STATES[state] ?? [state, '']) : ['not available yet', '']
  return element('span', { className: `badge ${look}` }, text)
}

/** What stands between backticks is a name, a value or a command. */
export const withCode = (text) => text.split('`').map((part, at) => (at % 2 === 1 ? element('code', {}, part) : part))

export const accountPath = (name, action, account) =>
  `/api/channels/${encodeURIComponent(name)}/${action}?account_id=${encodeURIComponent(account)}`
