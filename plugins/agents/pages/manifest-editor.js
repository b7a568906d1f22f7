import { call, element, replace, show } from '../../kit/kit.js'

const PAUSE_MS = 300

const onOff = { '': 'As the daemon', true: 'On', false: 'Off' }
const policies = { '': 'As the daemon', never: 'Never', risky: 'For what can do harm', always: 'For every tool' }
/** What the form shows of a manifest: the path of each key, and what kind of value it has. */
const fields = [
  { path: 'name', title: 'Name', isNeeded: true },
  { path: 'description', title: 'Description' },
  { path: 'model.provider', title: 'Provider', placeholder: 'default' },
  { path: 'model.model', title: 'Model', placeholder: 'default' },
  { path: 'model.system_prompt', title: 'System prompt', kind: 'text' },
  { path: 'model.temperature', title: 'Temperature', kind: 'number', placeholder: '0.7' },
  { path: 'metadata.approval', title: 'Ask for approval', choices: policies },
  { path: 'proactive_memory.auto_memorize', title: 'Remember what it is told', kind: 'boolean', choices: onOff },
  { path: 'proactive_memory.auto_retrieve', title: 'Use what it remembers', kind: 'boolean', choices: onOff },
  { path: 'capabilities.tools', title: 'Tools, one in a line; * stands for any characters', kind: 'list' },
]

/**
 * A form and the text of a manifest, which say the same: the daemon writes what is typed in the form into the text, and
 * checks it. `check()` does so at once, and `text()` resolves with the text when all that was typed is in it.
 */
export function manifestEditor(toml, agentId) {
  const { content, area, form, state, draw } = editorView(toml)
  const typed = new Map()
  let timer
  let isLost = false

  const { run, isRunning } = oneAtATime(checkOnce)
  const check = () => {
    clearTimeout(timer)
    return run()
  }
  async function checkOnce() {
    const before = area.value
    const edits = Object.fromEntries(typed)
    typed.clear()
    const checked = await send(before, edits)
    if (area.value !== before) {
      // Both were changed at once: what was typed in the form goes into the newer text.
      typeAgain(edits)
      return checkOnce()
    }
    isLost = Object.keys(edits).length > 0 && !checked.valid && checked.manifest_toml === before
    draw(checked, typed)
  }
  async function send(text, edits) {
    try {
      return await call('POST', '/api/agents/validate', { manifest_toml: text, agent_id: agentId, edits })
    } catch (error) {
      typeAgain(edits)
      replace(state, element('p', { className: 'problem' }, `It could not be checked. ${error.message}`))
      throw error
    }
  }
  function typeAgain(edits) {
    for (const [path, value] of Object.entries(edits)) if (!typed.has(path)) typed.set(path, value)
  }
  /** What keeps it from being checked is said in the form. */
  const checkShown = () => void check().catch(() => undefined)
  const later = () => {
    clearTimeout(timer)
    timer = setTimeout(checkShown, PAUSE_MS)
  }

  area.addEventListener('input', later)
  for (const one of form)
    one.input.addEventListener('input', () => {
      typed.set(one.path, one.read())
      later()
    })
  return {
    content,
    check: checkShown,
    async text() {
      if (typed.size > 0 || isRunning()) await check()
      if (isLost) throw new Error('What was typed in the form is not in the manifest: see what is said there.')
      return area.value
    },
  }
}

/** Runs the work, and once more when it is asked for meanwhile. */
function oneAtATime(work) {
  let running
  let isDue = false
  const repeat = async () => {
    while (isDue) {
      isDue = false
      await work()
    }
  }
  const run = () => {
    isDue = true
    running ??= repeat().finally(() => {
      running = undefined
    })
    return running
  }
  return { run, isRunning: () => running !== undefined }
}

/** The elements, and `draw`, which shows what the daemon said; `typed` are the keys whose fields stay as they are. */
function editorView(toml) {
  const area = element(
    'textarea',
    { className: 'manifest', 'aria-label': 'Manifest (TOML)', spellcheck: 'false', autocapitalize: 'off' },
    toml,
  )
  area.value = toml
  const state = element('div', { className: 'manifest-state', role: 'status' })
  const form = fields.map((field) => formField(field))
  const source = element('details', { 'data-open': 'toml' }, element('summary', {}, 'Manifest (TOML)'), area)
  const content = element(
    'div',
    { className: 'stack' },
    element('div', { className: 'manifest-form' }, ...form.map(({ place }) => place)),
    state,
    source,
  )

  function draw({ manifest_toml: text, manifest, faults, warnings }, typed) {
    if (area.value !== text) area.value = text
    area.setAttribute('aria-invalid', String(faults.length > 0))
    for (const one of form) {
      one.fill(manifest, !typed.has(one.path))
      one.complain(faults.find(({ key }) => key === one.path)?.message)
    }
    replace(
      state,
      faults.length === 0 && element('p', { className: 'hint' }, 'The manifest is right.'),
      faults.length > 0 &&
        element('ul', {}, ...faults.map((fault) => element('li', {}, fault.line && goTo(fault.line), told(fault)))),
      warnings.length > 0 && element('ul', { className: 'hint' }, ...warnings.map((one) => element('li', {}, one))),
    )
  }
  const goTo = (line) =>
    element(
      'button',
      { type: 'button', 'data-focus': `line ${line}`, onclick: () => select(source, area, line) },
      `Line ${line}`,
    )
  return { content, area, form, state, draw }
}

const told = ({ key, message }) => ` ${key ? `${key}: ` : ''}${message}`

function select(source, area, line) {
  source.open = true
  const lines = area.value.split('\n')
  const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0)
  area.focus()
  area.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0))
}

function formField(field) {
  const { path, title, kind, choices, placeholder, isNeeded } = field
  const id = `manifest-${path}`
  const problem = element('p', { id: `${id}-problem`, className: 'field-problem', hidden: true })
  const input = inputOf(field, {
    id,
    placeholder,
    required: isNeeded,
    autocomplete: 'off',
    'aria-describedby': problem.id,
  })
  const place = element(
    'div',
    { className: kind === 'text' || kind === 'list' ? 'field wide' : 'field' },
    element('label', { for: id }, title),
    input,
    problem,
  )
  let isBeingTyped = false
  input.addEventListener('input', () => (isBeingTyped = true))
  input.addEventListener('blur', () => (isBeingTyped = false))
  return {
    path,
    place,
    input,
    read: () => valueOf(input.value, field),
    /** What is being typed stays. */
    fill(manifest, mayReplace) {
      const value = manifest ? path.split('.').reduce((at, key) => at?.[key], manifest) : undefined
      const text = kind === 'list' ? [value ?? []].flat().join('\n') : String(value ?? '')
      const isShown = typeof value !== 'object' || kind === 'list'
      // A value that the form has no choice for is changed in the text.
      const isKnown = isShown && (choices === undefined || Object.hasOwn(choices, text))
      input.disabled = manifest === null || !isKnown
      if (isKnown && manifest !== null && mayReplace && !isBeingTyped) input.value = text
    },
    complain(message) {
      show(problem, message)
      input.setAttribute('aria-invalid', String(message !== undefined))
    },
  }
}

function inputOf({ kind, choices }, properties) {
  if (choices !== undefined)
    return element(
      'select',
      properties,
      ...Object.entries(choices).map(([value, text]) => element('option', { value }, text)),
    )
  if (kind === 'text' || kind === 'list') return element('textarea', { ...properties, spellcheck: kind === 'text' })
  return element('input', { ...properties, inputmode: kind === 'number' && 'decimal' })
}

/** `null`: the key is not there. */
function valueOf(text, { kind, isNeeded }) {
  if (kind === 'list')
    return text
      .split(/[\n,]/)
      .map((one) => one.trim())
      .filter(Boolean)
  if (text.trim() === '' && !isNeeded) return null
  if (kind === 'boolean') return text === 'true'
  if (kind === 'number') return Number.isFinite(Number(text)) ? Number(text) : text
  return text
}
