import { useKey } from './api.js'
import { canPair, rememberBrowser } from './device.js'
import { byId, element, show } from './elements.js'
import { isFramed } from './framed.js'
import { keyField } from './owner-key.js'

/**
 * Returns a function that runs `load`, and says `waiting` until it has run for the first time. When the daemon refuses the
 * key, the elements of `content` are hidden and the user is asked for it; other failures are shown in the element
 * `problem` of the page.
 */
export function withKey({ content, submit, load, waiting = 'Loading …' }) {
  let form
  const wait = element('p', { role: 'status', className: 'hint' }, waiting)
  document.querySelector('main')?.append(wait)
  const refresh = async () => {
    try {
      await load().finally(() => wait.remove())
    } catch (error) {
      // The page around a frame asks: nobody is to get used to entering a key in the page of any plugin.
      if (error.status === 401 && !isFramed) await ask()
      else show('problem', error.message)
      return false
    }
    show('problem')
    form?.remove()
    form = undefined
    for (const one of content) one.hidden = false
    return true
  }
  const ask = async () => {
    for (const one of content) one.hidden = true
    // The second time it was refused.
    show('problem', form ? 'The daemon does not accept this key.' : undefined)
    if (!form) {
      form = keyForm(submit, refresh)
      document.querySelector('main').append(form)
      form.querySelector('.remember').replaceWith(...(await rememberChoice()))
    }
    byId('key')?.focus()
  }
  return refresh
}

function keyForm(submit, onKey) {
  const key = keyField('key', { 'aria-describedby': 'key-hint' })
  const hint = element(
    'p',
    { id: 'key-hint', className: 'hint' },
    ['It is ', element('code', {}, 'api_key'), " in the daemon's ", element('code', {}, 'config.toml')],
    ', or the key of a paired device. It stays in this tab until you sign out or close it. With a sign-in, ',
    [element('a', { href: '/' }, 'open the chat'), ' first.'],
  )
  const form = element(
    'form',
    { id: 'key-form', className: 'card' },
    element('h2', {}, 'This daemon has a key'),
    element('label', { for: 'key' }, 'API key'),
    key,
    hint,
    element('p', { className: 'remember' }),
    element('div', { className: 'actions' }, element('button', { className: 'primary' }, submit)),
  )
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const isRemembered = byId('remember')?.checked
    useKey(key.value.trim())
    key.value = ''
    void open(onKey, isRemembered)
  })
  return form
}

async function open(onKey, isRemembered) {
  if (!(await onKey()) || !isRemembered) return
  try {
    await rememberBrowser()
  } catch (error) {
    show('problem', `This browser is not remembered. ${error.message}`)
  }
}

async function rememberChoice() {
  if (await canPair()) {
    const label = 'Remember this browser as a paired device, until I sign out'
    return [element('label', { className: 'check' }, element('input', { id: 'remember', type: 'checkbox' }), label)]
  }
  return [
    element(
      'p',
      { className: 'hint' },
      ['This browser cannot be remembered while pairing is off: ', element('code', {}, 'enabled = true'), ' under '],
      [element('code', {}, '[pairing]'), ' allows it.'],
    ),
  ]
}
