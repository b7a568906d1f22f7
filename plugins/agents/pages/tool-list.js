import { element, replace, show } from '../../kit/kit.js'

/**
 * The tools of a manifest: a box for each that the daemon has, and a text for what names others. As a field of the form,
 * whose changes are events of `input`.
 */
export class ToolList {
  #tools = []
  #names = []
  #manifest
  #failure
  #search = element('input', { type: 'search', autocomplete: 'off', spellcheck: 'false', id: 'tool-search' })
  #patterns = element('textarea', { id: 'tool-patterns', rows: '2', spellcheck: 'false', autocapitalize: 'off' })
  #count = element('p', { className: 'hint', role: 'status' })
  #rows = element('ul', { className: 'tool-rows' })
  #problem

  /** `tools` are those of the daemon, as a promise: they come when the form is there. */
  constructor({ path, title, problem, tools }) {
    this.path = path
    this.#problem = problem
    this.place = this.input = this.#view(title)
    this.#search.addEventListener('input', (event) => {
      // What is searched for is no change of the manifest.
      event.stopPropagation()
      this.#draw()
    })
    this.#search.addEventListener('keydown', (event) => {
      // It would save the agent.
      if (event.key === 'Enter') event.preventDefault()
    })
    this.#rows.addEventListener('input', ({ target }) => this.#toggle(target))
    this.#patterns.addEventListener('input', () => this.#readPatterns())
    tools.then(
      (known) => {
        this.#tools = known
        this.#show()
      },
      (error) => {
        this.#failure = `The tools of the daemon cannot be shown. ${error.message}`
        this.#draw()
      },
    )
  }

  read() {
    return this.#names
  }
  /** What is being typed stays. */
  fill(manifest, mayReplace) {
    this.#manifest = manifest
    const value = [manifest?.capabilities?.tools ?? []].flat()
    this.place.disabled = manifest === null || value.some((one) => typeof one !== 'string')
    if (this.place.disabled || !mayReplace) return this.#draw()
    this.#names = value
    this.#show()
  }
  complain(message) {
    show(this.#problem, message)
    this.#patterns.setAttribute('aria-invalid', String(message !== undefined))
  }

  #isListed(name) {
    return this.#tools.some((tool) => tool.name === name)
  }
  get #others() {
    return this.#names.filter((name) => !this.#isListed(name))
  }
  #toggle({ checked, dataset: { tool } }) {
    this.#names = checked ? [...this.#names, tool] : this.#names.filter((name) => name !== tool)
    this.#draw()
  }
  #readPatterns() {
    const lines = this.#patterns.value
      .split(/[\n,]/)
      .map((one) => one.trim())
      .filter(Boolean)
    const chosen = this.#names.filter((name) => this.#isListed(name) && !lines.includes(name))
    this.#names = [...lines, ...chosen]
    this.#draw()
  }

  #show() {
    if (document.activeElement !== this.#patterns) this.#patterns.value = this.#others.join('\n')
    this.#draw()
  }
  #draw() {
    const words = this.#search.value.toLowerCase().split(/\s+/)
    const found = this.#tools.filter(({ name, title, description }) => {
      const text = `${name} ${title ?? ''} ${description}`.toLowerCase()
      return words.every((word) => text.includes(word))
    })
    this.#count.textContent = this.#failure ?? this.#describe(found.length)
    replace(this.#rows, ...found.map((tool) => this.#row(tool)))
  }
  #describe(found) {
    const { tools_disabled: isOff, profile, capabilities } = this.#manifest ?? {}
    if (isOff === true) return 'It may use none: tools_disabled is set in the manifest.'
    if (profile !== undefined && capabilities?.tools === undefined)
      return `It may use the tools of the profile ${profile}, until some are chosen here.`
    const allowed = this.#tools.filter(({ name }) => patternFor(name, this.#names) !== undefined).length
    const more = found === this.#tools.length ? '' : ` ${found} found.`
    return `${allowed} of ${this.#tools.length} tools allowed.${more}`
  }

  #view(title) {
    const { id } = this.#patterns
    this.#patterns.setAttribute('aria-describedby', `${id}-hint ${this.#problem.id}`)
    const hint = 'One in a line; * stands for any characters, and alone for all tools.'
    return element(
      'fieldset',
      { className: 'field wide tools' },
      element('legend', {}, title),
      element('label', { for: id }, 'Patterns and other names'),
      this.#patterns,
      element('p', { id: `${id}-hint`, className: 'hint' }, hint),
      this.#problem,
      element('label', { for: this.#search.id }, 'Search tools'),
      this.#search,
      this.#count,
      this.#rows,
    )
  }
  #row(tool) {
    const { name, description } = tool
    const pattern = patternFor(name, this.#others)
    const box = element('input', {
      type: 'checkbox',
      id: `tool-${name}`,
      'data-focus': `tool ${name}`,
      'data-tool': name,
      checked: pattern !== undefined || this.#names.includes(name),
      disabled: pattern !== undefined,
      'aria-describedby': `tool-${name}-about`,
    })
    const notes = [pattern && `by ${pattern}`, against(tool, this.#manifest)].filter(Boolean)
    return element(
      'li',
      {},
      element('label', { className: 'check', for: box.id }, box, element('code', {}, name)),
      element(
        'p',
        { id: `tool-${name}-about`, className: 'hint' },
        firstSentence(description),
        notes.map((note) => [' ', element('span', { className: 'badge' }, note)]),
      ),
    )
  }
}

function patternFor(name, patterns) {
  return patterns.find((pattern) => matches(pattern, name))
}
function matches(pattern, name) {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
  return new RegExp(`^${parts.join('.*')}$`, 's').test(name)
}

/** Why it cannot be used although it is allowed. */
function against({ name, needs }, manifest) {
  const listed = (key) => [manifest?.[key] ?? []].flat()
  if (patternFor(name, listed('tool_blocklist')) !== undefined) return 'in tool_blocklist'
  const allowed = listed('tool_allowlist')
  if (allowed.length > 0 && patternFor(name, allowed) === undefined) return 'not in tool_allowlist'
  const isHeld = needs === null || [manifest?.capabilities?.[needs] ?? []].flat().some((one) => one !== false)
  return isHeld ? undefined : `needs capabilities.${needs}`
}

const firstSentence = (text) => /^.*?[.:](?=\s|$)/s.exec(text)?.[0].replace(/:$/, '.') ?? text
