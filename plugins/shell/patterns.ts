import { matchesWildcard } from 'svc/internal'
import { shellDepth } from './shell-depth.ts'
import { splitWords } from './words.ts'

/** One entry of `capabilities.shell`: `*`, or the words of a command in which `*` matches any characters of a word. */
interface Pattern {
  readonly all: boolean
  readonly words: readonly string[]
  readonly open: boolean
}

function readPattern(text: string): Pattern | undefined {
  const trimmed = text.trim()
  if (trimmed === '*') return { all: true, words: [], open: true }
  const split = splitWords(trimmed, '*?[]{}~#$&|;<>()')
  // An invalid pattern grants nothing.
  if (split.kind !== 'words') return undefined
  return { all: false, words: split.words, open: split.words.at(-1)?.endsWith('*') ?? false }
}

/**
 * Whether the patterns allow a command, given as its words. `names` are all names of the program: a link to a shell is
 * a shell. Shells, programs that start others and interpreters with inline code need `*`, or a pattern with exactly
 * these words.
 */
export function allows(patterns: readonly string[], words: readonly string[], names: readonly string[]): boolean {
  const depth = shellDepth(words, names)
  return patterns.some((text) => {
    const pattern = readPattern(text)
    if (!pattern) return false
    if (pattern.all) return true
    if (!covers(pattern, words)) return false
    if (depth === undefined) return true
    if (words.length === depth) return pattern.words.length === 1 && pattern.words[0] === words[0]
    const literal = pattern.words.slice(0, depth + 1)
    // The name as written must be that of a shell: a pattern for "./run" was not meant for a link to bash.
    return (
      literal.length > depth &&
      literal.every((word, index) => word === words[index]) &&
      shellDepth(literal, [baseName(literal[0] ?? '')]) !== undefined
    )
  })
}

const baseName = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

function covers({ words: pattern, open }: Pattern, words: readonly string[]): boolean {
  const last = pattern.length - 1
  if (pattern.at(-1) === '*' && last > 0)
    return (
      words.length >= last && pattern.slice(0, last).every((each, index) => matchesWildcard(each, words[index] ?? ''))
    )
  if (words.length < pattern.length || (!open && words.length > pattern.length)) return false
  return pattern.every((each, index) => matchesWildcard(each, words[index] ?? ''))
}
