import { element, show } from '../../kit/kit.js'
import { withCode } from './state.js'

/**
 * A field of the form with its label, help and problem. `read` has the new value: `undefined` when it was not changed,
 * and `null` to take it back to its default.
 */
export function makeField(spec, value) {
  const { key, label, description, required, advanced } = spec
  const id = `field-${key}`
  const input = makeInput(spec, id, value)
  const help = element('p', { id: `${id}-help`, className: 'hint', hidden: !description }, withCode(description))
  const problem = element('p', { id: `${id}-problem`, className: 'field-problem', role: 'alert', hidden: true })
  const erase = canErase(spec) && element('input', { type: 'checkbox' })
  input.setAttribute('aria-describedby', `${help.id} ${problem.id}`)
  const before = input.value
  const place = element(
    'div',
    { className: 'field' },
    element('label', { for: id }, label, required ? '' : element('span', { className: 'hint' }, ' (optional)')),
    input,
    erase && element('label', { className: 'check' }, erase, 'Remove the stored value'),
    help,
    problem,
  )
  return {
    key,
    place,
    isAdvanced: advanced === true && !required,
    read: () => (erase?.checked ? null : readValue(spec, input.value, before)),
    isMissing: () => required && !spec.has_value && input.value.trim() === '',
    complain(text) {
      show(problem, text)
      input.setAttribute('aria-invalid', String(text !== undefined))
    },
    focus() {
      const box = place.closest('details')
      if (box) box.open = true
      input.focus()
    },
  }
}

const canErase = ({ type, required, has_value: hasValue }) => type === 'secret' && !required && hasValue

function makeInput({ key, type, required, options = [], has_value: hasValue }, id, value) {
  const common = {
    id,
    name: key,
    autocomplete: 'off',
    spellcheck: 'false',
    autocapitalize: 'off',
    'aria-required': required && 'true',
  }
  if (type === 'secret') {
    const placeholder = hasValue ? 'Stored. Leave it empty to keep it.' : undefined
    return element('input', { ...common, type: 'password', autocomplete: 'new-password', placeholder })
  }
  const text = toText(value)
  if (type === 'boolean')
    return choice(
      common,
      [
        ['', 'Default'],
        ['true', 'Yes'],
        ['false', 'No'],
      ],
      text,
    )
  if (type === 'choice') {
    const first = ['', required ? 'Choose …' : 'Default']
    return choice(common, [first, ...options.map((one) => [one, one])], text)
  }
  if (type === 'list') {
    const box = element('textarea', { ...common, rows: 2, placeholder: 'One a line' })
    box.value = text
    return box
  }
  const isNumber = type === 'number' && { type: 'number', step: 'any' }
  return element('input', { ...common, ...isNumber, value: text, list: key === 'agent_name' && 'agents' })
}

function choice(common, options, text) {
  return element(
    'select',
    common,
    options.map(([value, label]) => element('option', { value, selected: value === text }, label)),
  )
}

function toText(value) {
  if (value === undefined || value === null) return ''
  return Array.isArray(value) ? value.join('\n') : String(value)
}

function readValue({ type }, text, before) {
  if (text === before) return undefined
  // Spaces at the ends of a secret may belong to it.
  const trimmed = type === 'secret' ? text : text.trim()
  if (trimmed === '') return type === 'list' ? [] : null
  if (type === 'list')
    return trimmed
      .split('\n')
      .map((one) => one.trim())
      .filter((one) => one !== '')
  return trimmed
}
