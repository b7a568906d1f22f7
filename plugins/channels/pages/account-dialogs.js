import { call, element, openDialog, show } from '../../kit/kit.js'
import { accountPath } from './state.js'

const nameOf = ({ title, id }) => (id === 'default' ? title : `${title} (${id})`)

export function askToTest({ name, title, id }) {
  const chat = element('input', { id: 'chat', autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off' })
  const result = element('p', { role: 'status', className: 'notice', hidden: true })
  openDialog({
    title: `Test ${nameOf({ title, id })}`,
    content: [
      element('label', { for: 'chat' }, 'Chat (optional)'),
      chat,
      element(
        'p',
        { className: 'hint' },
        'With the id of a chat, a test message is sent there. Without it, only the credentials are checked.',
      ),
      result,
    ],
    confirm: 'Test',
    busy: 'Testing …',
    cancel: 'Close',
    async submit() {
      show(result)
      const chatId = chat.value.trim()
      const body = { account_id: id, ...(chatId !== '' && { chat_id: chatId }) }
      const { status, message } = await call('POST', `/api/channels/${encodeURIComponent(name)}/test`, body)
      if (status !== 'ok') throw new Error(message)
      show(result, message)
      return false
    },
  })
}

/** Also connects an account anew that is enabled. */
export async function enable({ name, title, id }, { finish, done }) {
  try {
    await call('PUT', accountPath(name, 'enable', id))
    await finish(`${nameOf({ title, id })} ${done}.`)
  } catch (error) {
    openDialog({ title: `${nameOf({ title, id })} was not enabled`, content: element('p', {}, error.message) })
  }
}

export function askToDisable({ name, title, id }, { finish }) {
  openDialog({
    title: `Disable ${nameOf({ title, id })}?`,
    content: element('p', {}, 'Its connection ends. What waits to be sent is kept until it is enabled again.'),
    confirm: 'Disable',
    busy: 'Disabling …',
    async submit() {
      await call('PUT', accountPath(name, 'disable', id))
      await finish(`${nameOf({ title, id })} is disabled.`)
    },
  })
}

export function askToRemove({ name, title, id }, { finish }) {
  openDialog({
    title: `Remove ${nameOf({ title, id })}?`,
    content: element('p', {}, 'Its connection ends, and its configuration and its secrets are deleted.'),
    confirm: 'Remove',
    busy: 'Removing …',
    isDangerous: true,
    async submit() {
      await call('DELETE', accountPath(name, 'configure', id))
      await finish(`${nameOf({ title, id })} is removed.`)
    },
  })
}
