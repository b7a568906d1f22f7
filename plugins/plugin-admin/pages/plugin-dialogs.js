import { attempt, call, element, follow, openDialog, time } from '../../kit/kit.js'

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
  const deletesData = element('input', { type: 'checkbox' })
  const data = element('p', { className: 'hint' }, KEPT)
  deletesData.addEventListener('change', () => void describeData(name, deletesData, data))
  openDialog({
    title: `Remove ${name}?`,
    content: [
      element('p', {}, 'Its running calls end, then its files are deleted: ', element('code', {}, path ?? '')),
      element('label', { className: 'check' }, deletesData, 'Delete its data as well'),
      data,
      further,
    ],
    confirm: 'Remove',
    busy: 'Removing …',
    isDangerous: true,
    async submit() {
      await call('POST', '/api/plugins/uninstall', {
        name,
        force: force.checked,
        delete_data: deletesData.checked,
      })
      await onDone(deletesData.checked ? `${name} is removed, and its data is deleted.` : `${name} is removed.`)
    },
    onError({ message }) {
      further.hidden = !message.includes('is needed by')
    },
  })
}

const MAX_LINES = 100

/** Shows the last lines that the plugin wrote to the log. */
export function showLog(name) {
  return attempt(async () => {
    const query = new URLSearchParams({ filter: name, level: 'debug', tail: '500', follow: 'false' })
    const lines = []
    for await (const line of follow(`/api/logs/stream?${query}`)) if (line.tag === name) lines.push(line)
    openDialog({
      title: `Log of ${name}`,
      content: [
        lines.length === 0 && element('p', {}, 'It has written nothing lately.'),
        element(
          'ol',
          { className: 'log', 'aria-label': `Lines of ${name}`, tabindex: lines.length > 0 && '0' },
          lines
            .slice(-MAX_LINES)
            .map(({ timestamp, level, message }) =>
              element('li', {}, time(timestamp), ' ', element('b', {}, level), ` ${message}`),
            ),
        ),
      ],
    })
  })
}

const KEPT = 'Its tables, stored values and secrets stay, for the case that it returns.'

/** Says what would be deleted. */
async function describeData(name, { checked }, target) {
  if (!checked) {
    target.textContent = KEPT
    return
  }
  try {
    const request = { name, force: true, delete_data: true, dry_run: true }
    const { tables, values, secrets } = (await call('POST', '/api/plugins/uninstall', request)).data
    const listed = tables.map((table) => `${table.name} (${table.rows} rows)`).join(', ')
    target.textContent =
      `Deleted for good: tables ${listed || 'none'}; stored values: ${values}; ` +
      `secrets: ${secrets.join(', ') || 'none'}.`
  } catch (error) {
    target.textContent = `What it has stored cannot be read: ${error.message}`
  }
}
