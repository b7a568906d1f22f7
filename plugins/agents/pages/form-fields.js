import { element, show } from '../../kit/kit.js'
import { offerChoices, setValue } from './combobox.js'
import { readOffered } from './offered.js'
import { ToolList } from './tool-list.js'

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
  { path: 'capabilities.tools', title: 'Tools it may use', kind: 'tools' },
]

/**
 * The fields of the form, each with its `place` on the page and the `input` whose events tell of changes; `read()` is its
 * value, `fill(manifest, mayReplace)` shows that of a manifest, and `complain(message)` what is wrong with it.
 */
export function formFields() {
  let offered = { tools: [], providers: [], models: [] }
  const coming = readOffered().then((read) => (offered = read))
  const form = fields.map((field) => (field.kind === 'tools' ? toolField(field, coming) : formField(field)))
  const [provider, model] = ['model.provider', 'model.model'].map((path) => form.find((one) => one.path === path).input)
  const ownModels = () => {
    const chosen = provider.value.trim()
    if (chosen === '' || chosen === 'default') return offered.models
    return offered.models.filter((one) => one.value === 'default' || one.provider === chosen)
  }
  offer(provider, { title: 'Providers', options: () => offered.providers })
  offer(model, {
    title: 'Models',
    options: ownModels,
    onChoose: (chosen) => setValue(provider, chosen.provider ?? 'default'),
  })
  return form
}

/** The field is where it was, with what it offers. */
function offer(input, choices) {
  const mark = document.createComment('')
  input.replaceWith(mark)
  mark.replaceWith(offerChoices(input, choices))
}

const problemOf = (id) => element('p', { id: `${id}-problem`, className: 'field-problem', hidden: true })

function toolField({ path, title }, coming) {
  const problem = problemOf(`manifest-${path}`)
  return new ToolList({ path, title, problem, tools: coming.then(({ tools }) => tools) })
}

function formField(field) {
  const { path, title, kind, choices, placeholder, isNeeded } = field
  const id = `manifest-${path}`
  const problem = problemOf(id)
  const input = inputOf(field, {
    id,
    placeholder,
    required: isNeeded,
    autocomplete: 'off',
    'aria-describedby': problem.id,
  })
  const place = element(
    'div',
    { className: kind === 'text' ? 'field wide' : 'field' },
    element('label', { for: id }, title),
    input,
    problem,
  )
  let isBeingTyped = false
  input.addEventListener('input', () => (isBeingTyped = document.activeElement === input))
  input.addEventListener('blur', () => (isBeingTyped = false))
  return {
    path,
    place,
    input,
    read: () => valueOf(input.value, field),
    /** What is being typed stays. */
    fill(manifest, mayReplace) {
      const value = manifest ? path.split('.').reduce((at, key) => at?.[key], manifest) : undefined
      const text = String(value ?? '')
      // A value that the form has no choice for is changed in the text.
      const isKnown = typeof value !== 'object' && (choices === undefined || Object.hasOwn(choices, text))
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
  if (kind === 'text') return element('textarea', { ...properties, spellcheck: true })
  return element('input', { ...properties, inputmode: kind === 'number' && 'decimal' })
}

/** `null`: the key is not there. */
function valueOf(text, { kind, isNeeded }) {
  if (text.trim() === '' && !isNeeded) return null
  if (kind === 'boolean') return text === 'true'
  if (kind === 'number') return Number.isFinite(Number(text)) ? Number(text) : text
  return text
}
