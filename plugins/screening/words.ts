/** A word that some rule knows, and where it stands among all words and in the text. */
export interface Known {
  readonly word: string
  readonly at: number
  readonly from: number
  readonly to: number
}
export interface Scanned {
  readonly known: readonly Known[]
  /** Signs of the list that stand in the text. */
  readonly signs: readonly string[]
  /** Single letters that follow each other, put together; runs of at least sixteen. */
  readonly spaced: readonly string[]
  /** Names of roles at the beginning of a line with a colon behind them. */
  readonly roles: readonly string[]
}

const LONGEST = 24
const SPACED = 16
const MOST = 20
/** Words from the first of a rule to its last. */
const REACH = 80
/** Words that are kept; a text with more of them is nothing but them. */
export const MOST_KNOWN = 32_768
const roles: ReadonlySet<string> = new Set(['system', 'assistant', 'human'])
/** Digits that stand for letters, in words that have letters too. */
const digits: ReadonlyMap<string, string> = new Map([
  ['0', 'o'],
  ['1', 'i'],
  ['3', 'e'],
  ['4', 'a'],
  ['5', 's'],
  ['7', 't'],
])

/** Reads a normalised text once, character by character, and keeps of it what rules can be about. */
export class Scanner {
  readonly #words: ReadonlySet<string>
  readonly #firsts: ReadonlySet<string>
  readonly #signs: ReadonlyMap<number, readonly string[]>
  /** `firsts` begin a rule. */
  constructor(words: ReadonlySet<string>, firsts: ReadonlySet<string>, signs: readonly string[]) {
    this.#words = words
    this.#firsts = firsts
    this.#signs = Map.groupBy(signs, (sign) => sign.charCodeAt(0))
  }

  scan(text: string): Scanned {
    const found = { known: [] as Known[], signs: new Set<string>(), spaced: [] as string[], roles: [] as string[] }
    let [from, index, reach, letters, digit, run, opens] = [-1, 0, -1, false, false, '', true]
    for (let at = 0; at <= text.length; at++) {
      const code = at < text.length ? text.charCodeAt(at) : 32
      const isLetter = code >= 97 && code <= 122
      if (isLetter || (code >= 48 && code <= 57)) {
        if (from < 0) from = at
        if (isLetter) letters = true
        else digit = true
        continue
      }
      if (from >= 0) {
        const size = at - from
        if (size === 1) run += text.charAt(from)
        else {
          if (run.length >= SPACED && found.spaced.length < MOST) found.spaced.push(run)
          run = ''
        }
        if (size <= LONGEST) {
          const written = text.slice(from, at)
          const word =
            digit && letters && size > 3 && !this.#words.has(written)
              ? written.replaceAll(/[013457]/g, (sign) => digits.get(sign) ?? sign)
              : written
          const first = this.#firsts.has(word)
          if (first) reach = index + REACH
          // Most words that rules know are common ones, which mean nothing far from the first word of a rule.
          if ((first || (index <= reach && this.#words.has(word))) && found.known.length <= MOST_KNOWN)
            found.known.push({ word, at: index, from, to: at })
          if (opens && code === 58 && roles.has(word) && found.roles.length < MOST) found.roles.push(`${word}:`)
        }
        index++
        from = -1
        letters = digit = opens = false
      }
      if (code === 10) opens = true
      else if (code !== 32 && code !== 9 && code !== 13) opens = false
      const signs = this.#signs.get(code)
      if (signs && found.signs.size < MOST)
        for (const sign of signs) if (text.startsWith(sign, at)) found.signs.add(sign)
    }
    if (run.length >= SPACED) found.spaced.push(run)
    return { ...found, signs: [...found.signs] }
  }
}
