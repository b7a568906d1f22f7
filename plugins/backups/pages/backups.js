import { bytes, byId, call, element, livePage, openDialog, replace, show, table, time } from '../../kit/kit.js'

const POLL_MS = 30_000

const refresh = livePage({
  content: [byId('actions'), byId('backups')],
  submit: 'Show the backups',
  async load() {
    const { backups } = await call('GET', '/api/backups')
    replace(
      byId('actions'),
      element(
        'button',
        { type: 'button', className: 'primary', 'data-focus': 'make', onclick: askToMake },
        'Make a backup',
      ),
    )
    replace(
      byId('backups'),
      table({
        caption: 'Backups, the newest first',
        rows: backups,
        empty:
          'There is no backup yet. One has the database, workspaces, uploads and the configuration without secrets.',
        columns: [
          { title: 'Made', cell: ({ created_at: made, modified_at: modified }) => time(made ?? modified) },
          { title: 'File', cell: ({ filename }) => filename },
          { title: 'Version', cell: ({ svc_version: version }) => version ?? 'not readable' },
          { title: 'Size', isNumber: true, cell: ({ size_bytes: size }) => bytes(size) },
          { title: 'Actions', cell: buttons },
        ],
      }),
    )
  },
  words: ['backup'],
  everyMs: POLL_MS,
})

function buttons(backup) {
  const { filename } = backup
  const button = (text, onclick) =>
    element(
      'button',
      { type: 'button', 'data-focus': `${text} ${filename}`, 'aria-label': `${text}: ${filename}`, onclick },
      text,
    )
  return element(
    'div',
    { className: 'buttons' },
    button('Restore', () => askToRestore(filename)),
    button('Delete', () => askToDelete(filename)),
  )
}

const passphraseField = (input, hint) =>
  element('label', { className: 'field' }, 'Passphrase', input, element('span', { className: 'hint' }, hint))
const passphraseInput = () => element('input', { type: 'password', autocomplete: 'new-password', spellcheck: 'false' })
const withPassphrase = (input) => (input.value === '' ? {} : { passphrase: input.value })

function askToMake() {
  const passphrase = passphraseInput()
  openDialog({
    title: 'Make a backup',
    content: passphraseField(
      passphrase,
      'Seals the key of the vault into the backup, for a new machine. Without one the key stays here, and the secrets in ' +
        'the backup open on this home only.',
    ),
    confirm: 'Make it',
    busy: 'Copying …',
    async submit() {
      const { filename, size_bytes: size, skipped } = await call('POST', '/api/backup', withPassphrase(passphrase))
      await refresh()
      const left = skipped.length === 0 ? '' : ` Left out: ${skipped.map((one) => one.path ?? String(one)).join(', ')}.`
      show('notice', `${filename} is made, ${bytes(size)}.${left}`)
    },
  })
}

function askToRestore(filename) {
  const passphrase = passphraseInput()
  openDialog({
    title: 'Restore this backup?',
    content: [
      element(
        'p',
        {},
        `Everything becomes as it was in ${filename}. What is there now is set aside first, and the daemon starts anew.`,
      ),
      passphraseField(passphrase, 'Only for a backup that was made with one.'),
    ],
    confirm: 'Restore',
    busy: 'Restoring …',
    isDangerous: true,
    async submit() {
      const answer = await call('POST', '/api/restore', { filename, ...withPassphrase(passphrase) })
      show('notice', answer.message ?? `${filename} is restored.`)
    },
  })
}

function askToDelete(filename) {
  openDialog({
    title: 'Delete this backup?',
    content: element('p', {}, `${filename} is removed from the disk.`),
    confirm: 'Delete',
    isDangerous: true,
    async submit() {
      await call('DELETE', `/api/backups/${encodeURIComponent(filename)}`)
      await refresh()
      show('notice', `${filename} is deleted.`)
    },
  })
}

void refresh()
