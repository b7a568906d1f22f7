import { call, element, replace } from '../../kit/kit.js'
import { formFields } from './form-fields.js'

const PAUSE_MS = 300

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
  const form = formFields()
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
