import { call, element, openDialog } from '../../kit/kit.js'

/** Asks, reloads the plugin, and passes what came of it to `onDone`; `onFailed` draws what the failure left. */
export function askToReload(name, { onDone, onFailed }) {
  openDialog({
    title: `Reload ${name}?`,
    content: element(
      'p',
      {},
      'Its code is read again. Running calls end in the old code, and when the new code fails, the old one goes on.',
    ),
    confirm: 'Reload',
    busy: 'Reloading …',
    async submit() {
      const { status } = await call('POST', `/api/plugins/${encodeURIComponent(name)}/reload`)
      await onDone(status === 'reloaded' ? `${name} is reloaded.` : `${name} is being reloaded.`)
    },
    onError() {
      void onFailed()
    },
  })
}

/** Asks, and removes the plugin. Where others need it, a second question follows. */
export function askToRemove({ name, path }, { onDone }) {
  const force = element('input', { type: 'checkbox' })
  const further = element('label', { className: 'check', hidden: true }, force, 'Remove it all the same')
  openDialog({
    title: `Remove ${name}?`,
    content: [
      element('p', {}, 'Its running calls end, then its files are deleted: ', element('code', {}, path ?? '')),
      element('p', { className: 'hint' }, 'Its tables, stored values and secrets stay, for the case that it returns.'),
      further,
    ],
    confirm: 'Remove',
    busy: 'Removing …',
    isDangerous: true,
    async submit() {
      await call('POST', '/api/plugins/uninstall', { name, force: force.checked })
      await onDone(`${name} is removed.`)
    },
    onError({ message }) {
      further.hidden = !message.includes('is needed by')
    },
  })
}
