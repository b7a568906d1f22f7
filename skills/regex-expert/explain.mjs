const flagNames = {
  d: 'd: gives indices of groups',
  g: 'g: all matches',
  i: 'i: upper and lower case are the same',
  m: 'm: ^ and $ are those of each line',
  s: 's: . matches line ends too',
  u: 'u: reads Unicode code points',
  v: 'v: Unicode with sets',
  y: 'y: only at lastIndex',
}
const escapes = {
  d: 'a digit 0-9',
  D: 'not a digit 0-9',
  w: 'a letter, a digit or _ of ASCII',
  W: 'not a letter, a digit or _ of ASCII',
  s: 'white space',
  S: 'not white space',
  b: 'the edge of a word',
  B: 'not the edge of a word',
  n: 'a line feed',
  r: 'a carriage return',
  t: 'a tab',
  f: 'a form feed',
  v: 'a vertical tab',
  0: 'the character NUL',
}
/** The beginnings of groups, the longer first. */
const groups = [
  [/^\(\?:/, () => 'group without a number'],
  [/^\(\?=/, () => 'look-ahead: what follows is'],
  [/^\(\?!/, () => 'look-ahead: what follows is not'],
  [/^\(\?<=/, () => 'look-behind: what precedes is'],
  [/^\(\?<!/, () => 'look-behind: what precedes is not'],
  [/^\(\?<([^>]+)>/, ([, name], number) => `group ${number}, named ${name}`],
  [/^\(\?([a-z]*)(?:-([a-z]+))?:/, ([, on, off]) => `group with ${on ? `${on} on` : ''}${off ? ` ${off} off` : ''}`],
  [/^\(/, (_, number) => `group ${number}`],
]
const isNumbered = (source) => /^\((?!\?)|^\(\?<(?![=!])/.test(source)

/** How often something is there: the text of the repeat, its meaning, and whether it has no end. */
function readRepeat(rest) {
  const [source, sign, from, comma, to, lazy] = /^(?:([*+?])|\{(\d+)(,?)(\d*)\})(\??)/.exec(rest) ?? []
  if (source === undefined) return undefined
  const [min, max] =
    sign === undefined
      ? [Number(from), comma === '' ? Number(from) : to === '' ? Infinity : Number(to)]
      : { '*': [0, Infinity], '+': [1, Infinity], '?': [0, 1] }[sign]
  const times =
    max === Infinity
      ? `${min === 1 ? 'once' : `${min} times`} or more`
      : min === max
        ? `${min} times`
        : min === 0 && max === 1
          ? 'once or not at all'
          : `${min} to ${max} times`
  return { source, means: `${times}${lazy ? ', as few as will do' : ''}`, isEndless: max === Infinity }
}

/** The end of a class in brackets; with `v` one may hold others. */
function classEnd(pattern, at, hasSets) {
  let depth = 0
  for (let index = at; index < pattern.length; index++) {
    if (pattern[index] === '\\') index++
    else if (pattern[index] === '[' && (hasSets || index === at)) depth++
    else if (pattern[index] === ']' && --depth === 0) return index + 1
  }
  return pattern.length
}

function readEscape(rest) {
  const [source, name] =
    /^\\(p\{[^}]*\}|P\{[^}]*\}|u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|k<[^>]+>|[1-9]\d*|[^])/.exec(
      rest,
    )
  if (name.startsWith('p{')) return [source, `a character of Unicode ${name.slice(2, -1)}`]
  if (name.startsWith('P{')) return [source, `not a character of Unicode ${name.slice(2, -1)}`]
  if (/^[ux]./.test(name))
    return [
      source,
      `the character U+${name
        .replace(/[ux{}]/g, '')
        .toUpperCase()
        .padStart(4, '0')}`,
    ]
  if (/^c./.test(name)) return [source, `control-${name[1].toUpperCase()}`]
  if (name.startsWith('k<')) return [source, `the same text as group ${name.slice(2, -1)}`]
  if (/^[1-9]/.test(name)) return [source, `the same text as group ${name}`]
  return [source, escapes[name] ?? `the character ${name}`]
}

/** The next part that is neither a group nor a repeat. */
function readAtom(pattern, at, flags) {
  const rest = pattern.slice(at)
  const [first] = rest
  if (first === '\\') return readEscape(rest)
  if (first === '[') {
    const source = pattern.slice(at, classEnd(pattern, at, flags.includes('v')))
    return [
      source,
      source.startsWith('[^') ? `a character that is none of ${source.slice(2, -1)}` : `one of ${source.slice(1, -1)}`,
    ]
  }
  if (first === '.') return [first, flags.includes('s') ? 'any character' : 'any character but a line end']
  if (first === '^') return [first, flags.includes('m') ? 'the beginning of a line' : 'the beginning of the text']
  if (first === '$') return [first, flags.includes('m') ? 'the end of a line' : 'the end of the text']
  if (first === '|') return [first, 'or']
  const [run] = /^[^\\[\].^$|()*+?{}]+|^[^]/u.exec(rest)
  // A repeat after some characters is one of the last of them.
  const letters = [...run]
  const isRepeated = letters.length > 1 && readRepeat(rest.slice(run.length)) !== undefined
  const source = isRepeated ? letters.slice(0, -1).join('') : run
  return [source, `the text ${JSON.stringify(source)}`]
}

/** A pattern that can be used, part by part. */
class Reader {
  parts = []
  risks = []
  count = 0
  #pattern
  #flags
  #at = 0
  /** Groups that are open, the innermost last. */
  #open = []
  constructor(pattern, flags) {
    this.#pattern = pattern
    this.#flags = flags
  }

  read() {
    while (this.#at < this.#pattern.length) {
      if (this.#pattern[this.#at] === '(') this.#begin()
      else this.#next()
    }
  }

  #add(part, means) {
    this.parts.push({ at: this.#at, depth: this.#open.length, part, means })
    this.#at += part.length
  }

  #begin() {
    const rest = this.#pattern.slice(this.#at)
    if (isNumbered(rest)) this.count++
    const [begin, name] = groups.find(([each]) => each.test(rest))
    const match = begin.exec(rest)
    const group = { at: this.#at, hasEndless: false }
    this.#add(match[0], name(match, this.count))
    this.#open.push(group)
  }

  #next() {
    const closed = this.#pattern[this.#at] === ')' ? this.#open.pop() : undefined
    const [source, means] = closed ? [')', 'end of the group'] : readAtom(this.#pattern, this.#at, this.#flags)
    const repeat = readRepeat(this.#pattern.slice(this.#at + source.length))
    this.#add(source + (repeat?.source ?? ''), repeat ? `${means}, ${repeat.means}` : means)
    const isEndless = repeat?.isEndless === true
    if (closed?.hasEndless && isEndless) {
      const text = this.#pattern.slice(closed.at, this.#at)
      this.risks.push(`${text}: a repeat in a repeat may take time that doubles with each character`)
    }
    const outer = this.#open.at(-1)
    if (outer && (isEndless || closed?.hasEndless)) outer.hasEndless = true
  }
}

/** The parts of a pattern that can be used, in order, and what makes it slow. */
export function explain(pattern, flags) {
  const reader = new Reader(pattern, flags)
  reader.read()
  return {
    pattern: `/${pattern}/${flags}`,
    engine: 'JavaScript',
    groups: reader.count,
    ...(flags !== '' && { flags: [...flags].map((flag) => flagNames[flag]) }),
    parts: reader.parts,
    risks: reader.risks,
  }
}
