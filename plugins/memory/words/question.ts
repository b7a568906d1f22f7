import { alternativesOf } from './meanings.ts'
import { wordsOf } from './words.ts'

/** A word of a question. */
export interface Term {
  /** What a memory may have of it: the word itself, then others that mean the same. */
  readonly words: readonly string[]
  /** How much of its weight counts, from 0 to 1. */
  readonly share: number
  /** The same where no memory has it. */
  readonly unseenShare: number
}
export interface Question {
  readonly terms: readonly Term[]
  /** Else it is a message, or words that are looked for. */
  readonly isQuestion: boolean
  /** It is a question in English: which words say little is known then, and which mean the same. */
  readonly isEnglish: boolean
}

const QUESTION =
  /[?？؟]|^\s*(?:what|which|who|whom|whose|where|when|why|how|do|does|did|is|are|was|were|has|have|can)\b/i
/** Words of questions that hardly any other language has. */
const ENGLISH = /\b(?:the|what|which|who|whom|whose|where|when|why|how|does|did|my|our|your)\b/i
const LIGHT_SHARE = 0.25
/** They say how to answer, and little of what about. */
const LIGHT = new Set(
  wordsOf(
    'name kind sort type part way thing number day date time week month year hour many much long often far ever still ' +
      'now today currently current new go get make take use own come please remind know remember say',
  ),
)
/** A memory has the thing itself instead: "Rue Garibaldi", where "which street" is asked. */
const UNSEEN_KIND_SHARE = 0.5
const VERB = '(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|may|must)\\b'
const KIND = new RegExp(`\\b(?:what|which)((?: (?!${VERB})[\\p{L}\\p{N}'’-]+){1,4}?) ${VERB}`, 'iu')
/** Such as the name of a person: two words or more that begin with a capital, not at the beginning. */
const NAME = /(?<=\S\s)\p{Lu}[\p{L}\p{M}'’-]*(?:\s\p{Lu}[\p{L}\p{M}'’-]*)+/gu

/** Of any text that is looked for. */
export function readQuestion(text: string): Question {
  const words = [...new Set(wordsOf(text))]
  const isQuestion = QUESTION.test(text)
  if (!isQuestion || !ENGLISH.test(text)) return { terms: words.map(plainTerm), isQuestion, isEnglish: false }
  const light = words.every((word) => LIGHT.has(word)) ? new Set<string>() : LIGHT
  const kinds = new Set(wordsOf(KIND.exec(text)?.[1] ?? ''))
  const named = sharesOfNames(text)
  const terms = words.map((word): Term => {
    const other = [word, ...alternativesOf(word)]
    if (light.has(word)) return { words: other, share: LIGHT_SHARE, unseenShare: 0 }
    const share = named.get(word) ?? 1
    return { words: other, share, unseenShare: kinds.has(word) ? UNSEEN_KIND_SHARE : share }
  })
  return { terms, isQuestion, isEnglish: true }
}

/** Words that are compared as they are. */
export const plainly = (text: string): Question => ({
  terms: [...new Set(wordsOf(text))].map(plainTerm),
  isQuestion: false,
  isEnglish: false,
})
const plainTerm = (word: string): Term => ({ words: [word], share: 1, unseenShare: 1 })

/** The words of a name count as one together. */
function sharesOfNames(text: string): ReadonlyMap<string, number> {
  const shares = new Map<string, number>()
  for (const [name] of text.matchAll(NAME)) {
    const parts = wordsOf(name)
    for (const part of parts) shares.set(part, 1 / parts.length)
  }
  return shares
}
