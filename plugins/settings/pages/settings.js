import {
  attempt,
  byId,
  call,
  element,
  keepInAddress,
  livePage,
  openDialog,
  replace,
  show,
  whileBusy,
} from '../../kit/kit.js'

const POLL_MS = 60_000
keepInAddress(byId('search'), byId('changed'))
let [schema, config] = [{ properties: {} }, { config: {}, sources: {}, restart_required: [] }]

const refresh = livePage({
  content: [byId('filter'), byId('settings')],
  submit: 'Show the settings',
  async load() {
    ;[schema, config] = await Promise.all([call('GET', '/api/config/schema'), call('GET', '/api/config')])
    draw()
    const waiting = config.restart_required
    if (waiting.length > 0) show('notice', `These hold after a restart: ${waiting.join(', ')}.`)
  },
  words: ['configuration', 'config'],
  everyMs: POLL_MS,
})
byId('filter').addEventListener('submit', (event) => event.preventDefault())
for (const id of ['search', 'changed']) byId(id).addEventListener('input', draw)
byId('reload').addEventListener('click', ({ currentTarget: button }) =>
  whileBusy(button, 'Reading …', () =>
    attempt(async () => {
      const { changed, restart_reasons: later, warnings } = await call('POST', '/api/config/reload')
      await refresh()
      const said = changed.length === 0 ? 'Nothing in the file has changed.' : `In force now: ${changed.join(', ')}.`
      show(
        'notice',
        [said, later.length > 0 && `After a restart: ${later.join(', ')}.`, ...warnings].filter(Boolean).join(' '),
      )
    }),
  ),
)

/** The settings of a schema by their dotted keys; sections are walked, everything else is one setting. */
function* settingsOf(properties, values, path = []) {
  for (const [name, of] of Object.entries(properties)) {
    const keys = [...path, name]
    const value = values?.[name]
    if (of.type === 'object' && of.properties) yield* settingsOf(of.properties, value, keys)
    else yield { key: keys.join('.'), section: keys.slice(0, -1).join('.'), of, value }
  }
}
const isDefault = ({ of, value }) => value === undefined || JSON.stringify(value) === JSON.stringify(of.default)

function draw() {
  const words = byId('search').value.toLowerCase().split(/\s+/)
  const onlyChanged = byId('changed').checked
  const found = [...settingsOf(schema.properties, config.config)].filter((setting) => {
    const text = `${setting.key} ${setting.of.description ?? ''}`.toLowerCase()
    return words.every((word) => text.includes(word)) && !(onlyChanged && isDefault(setting))
  })
  // First those at the top of the file.
  const sections = [...Map.groupBy(found, ({ section }) => section)].toSorted(([one], [other]) =>
    one < other ? -1 : 1,
  )
  const isNarrow = byId('search').value.trim() !== '' || onlyChanged
  replace(
    byId('settings'),
    found.length === 0 && element('p', { className: 'hint' }, 'No setting is like this.'),
    sections.map(([section, list]) =>
      element(
        'details',
        { className: 'card', 'data-open': isNarrow ? undefined : section, open: isNarrow },
        element(
          'summary',
          {},
          section === '' ? 'At the top of the file' : `[${section}]`,
          `, ${list.length === 1 ? 'one setting' : `${list.length} settings`}`,
        ),
        list.map(row),
      ),
    ),
  )
}

function row(setting) {
  const { key, of, value } = setting
  const source = config.sources[key]
  const marks = [
    of.restart && 'holds after a restart',
    source && `from ${source}`,
    !isDefault(setting) && of.default !== undefined && `default: ${JSON.stringify(of.default)}`,
  ].filter(Boolean)
  return element(
    'div',
    { className: 'setting' },
    element('h3', {}, key.split('.').at(-1)),
    element('p', { className: 'hint' }, [of.description, ...marks].filter(Boolean).join(' · ')),
    of.file_only && element('p', { className: 'hint' }, `Only in config.toml, because it ${of.reason}.`),
    element(
      'div',
      { className: 'value' },
      element('code', {}, of.secret ? (value === undefined ? 'not set' : '***') : toText(value ?? of.default)),
      !of.file_only &&
        element(
          'button',
          { type: 'button', 'data-focus': key, 'aria-label': `Change ${key}`, onclick: () => ask(setting) },
          'Change',
        ),
    ),
  )
}
const toText = (value) =>
  value === undefined ? 'not set' : typeof value === 'string' ? value || '""' : JSON.stringify(value)

function ask({ key, of, value }) {
  const { input, read } = fieldFor(of, value)
  openDialog({
    title: key,
    content: [
      of.description && element('p', { className: 'hint' }, of.description),
      element(
        'label',
        { className: of.type === 'boolean' ? 'check' : 'field' },
        of.type === 'boolean' ? [input, 'On'] : ['Value', input],
      ),
    ],
    confirm: 'Save',
    async submit() {
      const {
        restart_reasons: later,
        overridden_by: overridden,
        warnings,
      } = await call('POST', '/api/config/set', { key, value: read() })
      await refresh()
      show(
        'notice',
        [
          overridden
            ? `It is in the file, and ${overridden} overrides it.`
            : later.includes(key)
              ? 'Saved. It holds after a restart.'
              : 'Saved. It holds now.',
          ...warnings,
        ].join(' '),
      )
    },
  })
}

function fieldFor(of, value) {
  if (of.type === 'boolean') {
    const input = element('input', { type: 'checkbox', checked: (value ?? of.default) === true })
    return { input, read: () => input.checked }
  }
  if (of.enum) {
    const input = element(
      'select',
      {},
      of.enum.map((one) => element('option', { value: one }, String(one))),
    )
    input.value = value ?? of.default ?? of.enum[0]
    return { input, read: () => of.enum.find((one) => String(one) === input.value) }
  }
  if (of.type === 'integer' || of.type === 'number') {
    const step = of.type === 'integer' ? '1' : 'any'
    const input = element('input', {
      type: 'number',
      min: of.minimum,
      max: of.maximum,
      step,
      value: value ?? of.default,
    })
    return { input, read: () => (input.value === '' ? null : Number(input.value)) }
  }
  if (of.type === 'string') {
    const isSecret = of.secret === true
    const input = element('input', {
      type: isSecret ? 'password' : 'text',
      autocomplete: isSecret ? 'new-password' : 'off',
      spellcheck: 'false',
      value: isSecret ? '' : (value ?? of.default),
    })
    return { input, read: () => input.value }
  }
  const input = element('textarea', { spellcheck: 'false' }, JSON.stringify(value ?? of.default ?? null, undefined, 2))
  return { input, read: () => readJson(input.value) }
}
function readJson(text) {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`This is no JSON: ${error.message}`, { cause: error })
  }
}

void refresh()
