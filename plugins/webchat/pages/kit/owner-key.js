import { openDialog } from './dialogs.js'
import { element } from './elements.js'

let asking

/**
 * Asks for the API key, for something that a paired device must not do: once, however many requests wait for it.
 * `message` is what the daemon said, and `check(key)` throws what it says to the key. Resolves with the key, or
 * `undefined` when there is none.
 */
export function askForOwnerKey(message, check) {
  asking ??= new Promise((resolve) => {
    const field = keyField('owner-key')
    openDialog({
      title: 'This needs the API key',
      content: [
        element('p', {}, `${message}. It stays in this tab until you sign out or close it.`),
        element('label', { for: 'owner-key' }, 'API key'),
        field,
      ],
      confirm: 'Go on',
      async submit() {
        const key = field.value.trim()
        await check(key)
        resolve(key)
      },
      onClose: () => resolve(undefined),
    })
  }).finally(() => {
    asking = undefined
  })
  return asking
}

export function keyField(id, properties = {}) {
  return element('input', {
    id,
    type: 'password',
    required: true,
    autocomplete: 'off',
    spellcheck: 'false',
    ...properties,
  })
}
