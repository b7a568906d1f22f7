/** A word that some rule contains: its position among all words (`index`) and in the text (`from`, `to`). */
export interface RuleWord {
  readonly word: string
  readonly index: number
  readonly from: number
  readonly to: number
}
export interface ScanResult {
  readonly ruleWords: readonly RuleWord[]
  /** Markers of the list that occur in the text. */
  readonly markers: readonly string[]
  /** Runs of at least sixteen single letters, joined. */
  readonly spacedLetters: readonly string[]
  /** Role names at the beginning of a line, followed by a colon. */
  readonly roles: readonly string[]
}

const MAX_WORD_LENGTH = 24
const MIN_SPACED_LETTERS = 16
const MAX_FINDINGS = 20
/** The distance in words from the first word of a rule to its last. */
const RULE_SPAN = 80
/** A text with more rule words than this consists of nothing else. */
export const MAX_RULE_WORDS = 32_768
const roles: ReadonlySet<string> = new Set(['system', 'assistant', 'human'])
/** Digits that replace letters in words that contain letters too. */
const lettersForDigits: ReadonlyMap<string, string> = new Map([
  ['0', 'o'],
  ['1', 'i'],
  ['3', 'e'],
  ['4', 'a'],
  ['5', 's'],
  ['7', 't'],
])
const TAB = 9
const LINE_FEED = 10
const CARRIAGE_RETURN = 13
const SPACE = 32
const COLON = 58

interface Vocabulary {
  readonly words: ReadonlySet<string>
  /** Words that begin a rule. */
  readonly firstWords: ReadonlySet<string>
  /** By the code of their first character. */
  readonly markers: ReadonlyMap<number, readonly string[]>
}

/** Reads a normalised text once, character by character, and keeps what rules can match. */
export class Scanner {
  readonly #vocabulary: Vocabulary

  constructor(words: ReadonlySet<string>, firstWords: ReadonlySet<string>, markers: readonly string[]) {
    this.#vocabulary = { words, firstWords, markers: Map.groupBy(markers, (marker) => marker.charCodeAt(0)) }
  }

  scan(text: string): ScanResult {
    return new Scan(text, this.#vocabulary).run()
  }
}

class Scan {
  readonly #text: string
  readonly #vocabulary: Vocabulary
  readonly #ruleWords: RuleWord[] = []
  readonly #markers = new Set<string>()
  readonly #spacedLetters: string[] = []
  readonly #roles: string[] = []
  /** How many words were read. */
  #wordCount = 0
  /** The last word index at which a started rule can end. */
  #ruleEnd = -1
  /** Single letters in a row. */
  #letterRun = ''
  #atLineStart = true

  constructor(text: string, vocabulary: Vocabulary) {
    this.#text = text
    this.#vocabulary = vocabulary
  }

  run(): ScanResult {
    const text = this.#text
    let wordStart = -1
    let hasLetter = false
    let hasDigit = false
    for (let at = 0; at <= text.length; at++) {
      const code = at < text.length ? text.charCodeAt(at) : SPACE
      const isLetter = code >= 97 && code <= 122
      if (isLetter || (code >= 48 && code <= 57)) {
        if (wordStart < 0) wordStart = at
        hasLetter ||= isLetter
        hasDigit ||= !isLetter
        continue
      }
      if (wordStart >= 0) this.#addWord(wordStart, at, hasLetter && hasDigit, code)
      wordStart = -1
      hasLetter = hasDigit = false
      this.#trackLineStart(code)
      this.#addMarkers(code, at)
    }
    if (this.#letterRun.length >= MIN_SPACED_LETTERS) this.#spacedLetters.push(this.#letterRun)
    return {
      ruleWords: this.#ruleWords,
      markers: [...this.#markers],
      spacedLetters: this.#spacedLetters,
      roles: this.#roles,
    }
  }

  #addWord(from: number, to: number, isMixed: boolean, nextCode: number): void {
    this.#addToLetterRun(from, to)
    if (to - from <= MAX_WORD_LENGTH) {
      const word = this.#readWord(from, to, isMixed)
      this.#addRuleWord(word, from, to)
      if (this.#atLineStart && nextCode === COLON && roles.has(word) && this.#roles.length < MAX_FINDINGS)
        this.#roles.push(`${word}:`)
    }
    this.#wordCount++
    this.#atLineStart = false
  }

  #addToLetterRun(from: number, to: number): void {
    if (to - from === 1) {
      this.#letterRun += this.#text.charAt(from)
      return
    }
    if (this.#letterRun.length >= MIN_SPACED_LETTERS && this.#spacedLetters.length < MAX_FINDINGS)
      this.#spacedLetters.push(this.#letterRun)
    this.#letterRun = ''
  }

  /** `isMixed` words contain letters and digits, so a digit may replace a letter. */
  #readWord(from: number, to: number, isMixed: boolean): string {
    const word = this.#text.slice(from, to)
    if (!isMixed || word.length <= 3 || this.#vocabulary.words.has(word)) return word
    return word.replaceAll(/[013457]/g, (digit) => lettersForDigits.get(digit) ?? digit)
  }

  #addRuleWord(word: string, from: number, to: number): void {
    const beginsRule = this.#vocabulary.firstWords.has(word)
    if (beginsRule) this.#ruleEnd = this.#wordCount + RULE_SPAN
    // Most rule words are common ones and mean nothing far from the first word of a rule.
    const isRelevant = beginsRule || (this.#wordCount <= this.#ruleEnd && this.#vocabulary.words.has(word))
    if (isRelevant && this.#ruleWords.length <= MAX_RULE_WORDS)
      this.#ruleWords.push({ word, index: this.#wordCount, from, to })
  }

  #trackLineStart(code: number): void {
    if (code === LINE_FEED) this.#atLineStart = true
    else if (code !== SPACE && code !== TAB && code !== CARRIAGE_RETURN) this.#atLineStart = false
  }

  #addMarkers(code: number, at: number): void {
    const candidates = this.#vocabulary.markers.get(code)
    if (!candidates || this.#markers.size >= MAX_FINDINGS) return
    for (const marker of candidates) if (this.#text.startsWith(marker, at)) this.#markers.add(marker)
  }
}
