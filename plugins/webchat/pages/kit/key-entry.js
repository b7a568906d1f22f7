import { useKey } from './api.js'
import { byId, element, show } from './elements.js'

/**
 * Returns a function that runs `load`. When the daemon refuses the key, the elements of `content` are hidden and the user
 * is asked for it; other failures are shown in the element `problem` of the page.
 */
export function withKey({ content, submit, load }) {
  let form
  const refresh = async () => {
    try {
      await load()
    } catch (error) {
      if (error.status === 401) ask()
      else show('problem', error.message)
      return false
    }
    show('problem')
    form?.remove()
    form = undefined
    for (const one of content) one.hidden = false
    return true
  }
  const ask = () => {
    for (const one of content) one.hidden = true
    // The second time it was refused.
    show('problem', form ? 'The daemon does not accept this key.' : undefined)
    if (!form) {
      form = keyForm(submit, refresh)
      document.querySelector('main').append(form)
    }
    byId('key').focus()
  }
  return refresh
}

function keyForm(submit, onKey) {
  const key = element('input', {
    id: 'key',
    type: 'password',
    required: true,
    autocomplete: 'off',
    spellcheck: 'false',
    'aria-describedby': 'key-hint',
  })
  const remember = element('input', { type: 'checkbox' })
  const hint = element(
    'p',
    { id: 'key-hint', className: 'hint' },
    ['It is ', element('code', {}, 'api_key'), " in the daemon's ", element('code', {}, 'config.toml')],
    ', or the key of a paired device. This page keeps it in memory only, unless you have it remembered.',
  )
  const form = element(
    'form',
    { id: 'key-form', className: 'card' },
    element('h2', {}, 'This daemon has a key'),
    element('label', { for: 'key' }, 'API key'),
    key,
    hint,
    element('label', { className: 'check' }, remember, 'Remember it on this device, for the chat page too'),
    element('div', { className: 'actions' }, element('button', { className: 'primary' }, submit)),
  )
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    useKey(key.value.trim(), remember.checked)
    key.value = ''
    void onKey()
  })
  return form
}
