import { element } from '../../kit/kit.js'

const MAX_SHOWN = 50

/**
 * Lets a text field offer what can be typed, as the pattern “combobox” of the ARIA practices: any other text may be typed
 * too. `options()` are `{ value, title, facts }`; `onChoose` gets the one that is chosen, once the field has its value.
 * Returns the element to put in the place of the field.
 */
export function offerChoices(input, { title, options, onChoose = () => undefined }) {
  const choose = (option) => {
    setValue(input, option.value)
    onChoose(option)
  }
  const list = new ChoiceList(input, title, choose)
  const open = (search) => list.open(matching(options(), search), search)
  input.addEventListener('input', ({ isTrusted }) => {
    // Not for a value that was set here.
    if (isTrusted) open(input.value.trim())
  })
  input.addEventListener('click', () => {
    if (list.isOpen) return list.close()
    // What is typed now is searched for.
    input.select()
    open('')
  })
  input.addEventListener('blur', () => list.close())
  input.addEventListener('keydown', (event) => {
    const handle = {
      ArrowDown: () => (list.isOpen ? list.move(1) : open('')),
      ArrowUp: () => (list.isOpen ? list.move(-1) : open('')),
      Enter: list.active && (() => list.choose(list.active)),
      Escape: list.isOpen && (() => list.close()),
    }[event.key]
    if (!handle || event.isComposing) return
    event.preventDefault()
    handle()
  })
  return element('div', { className: 'combobox' }, input, list.place, list.found)
}

/** As if it had been typed. */
export function setValue(input, value) {
  input.value = value
  input.dispatchEvent(new Event('input', { bubbles: true }))
}

function matching(options, search) {
  const words = search.toLowerCase().split(/\s+/)
  return options.filter(({ value, title }) => {
    const text = `${value} ${title}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
}

/** The list below a field, which keeps the focus. */
class ChoiceList {
  #input
  #choose
  #shown = []
  #at = -1

  constructor(input, title, choose) {
    this.#input = input
    this.#choose = choose
    this.place = element('ul', { id: `${input.id}-list`, role: 'listbox', 'aria-label': title, hidden: true })
    this.found = element('span', { className: 'hidden', role: 'status' })
    input.setAttribute('role', 'combobox')
    input.setAttribute('aria-autocomplete', 'list')
    input.setAttribute('aria-controls', this.place.id)
    this.close()
  }

  get isOpen() {
    return !this.place.hidden
  }
  get active() {
    return this.#shown[this.#at]
  }

  open(options, search) {
    this.close()
    this.found.textContent = options.length === 0 ? 'Nothing is called that.' : `${options.length} to choose from.`
    if (options.length === 0) return
    this.#shown = options.slice(0, MAX_SHOWN)
    this.place.replaceChildren(...this.#shown.map((option, at) => this.#row(option, at)))
    if (options.length > MAX_SHOWN) this.place.append(more(options.length - MAX_SHOWN))
    this.place.hidden = false
    this.#input.setAttribute('aria-expanded', 'true')
    this.place.scrollIntoView({ block: 'nearest' })
    if (search === '') this.#activate(this.#shown.findIndex(({ value }) => value === this.#input.value))
  }
  close() {
    this.place.hidden = true
    this.#shown = []
    this.#input.setAttribute('aria-expanded', 'false')
    this.#activate(-1)
  }
  choose(option) {
    this.close()
    this.#choose(option)
  }
  /** To the next one or the one before, and around at the ends. */
  move(by) {
    const { length } = this.#shown
    this.#activate(this.#at === -1 && by < 0 ? length - 1 : (this.#at + by + length) % length)
  }

  #activate(at) {
    this.place.children[this.#at]?.classList.remove('active')
    this.#at = at
    const one = this.place.children[at]
    if (!one) return this.#input.removeAttribute('aria-activedescendant')
    one.classList.add('active')
    one.scrollIntoView({ block: 'nearest' })
    this.#input.setAttribute('aria-activedescendant', one.id)
  }

  #row(option, at) {
    const { value, title, facts = [] } = option
    const row = element(
      'li',
      { id: `${this.place.id}-${at}`, role: 'option', 'aria-selected': String(value === this.#input.value) },
      element('strong', {}, title),
      element('span', { className: 'facts' }, ...facts.map((fact) => [' ', element('span', {}, fact)])),
    )
    row.addEventListener('pointerdown', (event) => event.preventDefault())
    row.addEventListener('click', () => this.choose(option))
    return row
  }
}

function more(count) {
  const text = `${count} more. Type to find one.`
  return element('li', { role: 'option', 'aria-disabled': 'true', className: 'hint' }, text)
}
