import { element } from '../../kit/kit.js'

/**
 * The fields of what an approval asks a person to fill in, as elements, and `read()`, which returns the answers by name.
 * A field that is left empty is left out, which gives it its default.
 */
export function formFields(fields) {
  const made = fields.map(field)
  return {
    elements: made.map(({ shown }) => shown),
    read: () =>
      Object.fromEntries(
        made.map(({ name, value }) => [name, value()]).filter(([, value]) => value !== undefined && value !== ''),
      ),
  }
}

const LINE_TYPES = { number: 'number', integer: 'number', email: 'email', uri: 'url', date: 'date' }

function field({ name, kind, title, description, required, options = [], format, minimum, maximum, default: usual }) {
  const hint = description && element('span', { className: 'hint' }, description)
  const label = required ? title : `${title} (may be left out)`
  if (kind === 'boolean') {
    const box = element('input', { type: 'checkbox', checked: usual === true })
    return { name, shown: element('label', { className: 'check' }, box, title, hint), value: () => box.checked }
  }
  if (kind === 'choices') {
    const isChosen = (value) => Array.isArray(usual) && usual.includes(value)
    const boxes = options.map(({ value, title: text }) => {
      const box = element('input', { type: 'checkbox', value, checked: isChosen(value) })
      return { box, shown: element('label', { className: 'check' }, box, text) }
    })
    const shown = element('fieldset', {}, element('legend', {}, label), hint, ...boxes.map((one) => one.shown))
    return { name, shown, value: () => boxes.filter(({ box }) => box.checked).map(({ box }) => box.value) }
  }
  const input = kind === 'choice' ? choice(options, usual) : line()
  return { name, shown: element('label', { className: 'field' }, label, input, hint), value: () => input.value }

  function line() {
    const isNumber = kind === 'number' || kind === 'integer'
    return element('input', {
      type: LINE_TYPES[isNumber ? kind : format] ?? 'text',
      step: isNumber ? (kind === 'integer' ? '1' : 'any') : undefined,
      [isNumber ? 'min' : 'minlength']: minimum,
      [isNumber ? 'max' : 'maxlength']: maximum,
      value: usual,
    })
  }
}

function choice(options, usual) {
  return element(
    'select',
    {},
    usual === undefined && element('option', { value: '' }, '…'),
    options.map(({ value, title }) => element('option', { value, selected: value === usual }, title)),
  )
}
