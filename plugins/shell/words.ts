export type Words =
  | { readonly kind: 'words'; readonly words: readonly string[] }
  /** Only a shell could do what is meant: `sign` says why. */
  | { readonly kind: 'shell'; readonly sign: string }
  | { readonly kind: 'broken'; readonly why: string }

/** What a shell would not take literally outside quotes. */
const operators = new Set('|&;<>()$`*?[]{}~#!\n')
/** What a shell would still act on inside double quotes. */
const quotedOperators = new Set('$`')

/**
 * Splits a command into the words a program gets, with single quotes, double quotes and backslashes as in a POSIX
 * shell. Nothing is expanded. `literal` are signs that are words here although a shell acts on them: a pattern has `*`.
 */
export function splitWords(command: string, literal = ''): Words {
  const words: string[] = []
  let word: string | undefined
  let quote: '"' | "'" | undefined
  for (let at = 0; at < command.length; at++) {
    const sign = command.charAt(at)
    if (quote === "'") {
      if (sign === "'") quote = undefined
      else word += sign
    } else if (quote === '"') {
      if (sign === '"') quote = undefined
      else if (sign === '\\' && '"\\$`\n'.includes(command.charAt(at + 1)) && at + 1 < command.length) {
        at++
        if (command.charAt(at) !== '\n') word += command.charAt(at)
      } else if (quotedOperators.has(sign)) return { kind: 'shell', sign }
      else word += sign
    } else if (sign === '"' || sign === "'") {
      quote = sign
      word ??= ''
    } else if (sign === '\\') {
      if (at + 1 >= command.length) return { kind: 'broken', why: 'it ends in a backslash' }
      at++
      if (command.charAt(at) !== '\n') word = (word ?? '') + command.charAt(at)
    } else if (sign === ' ' || sign === '\t' || sign === '\r') {
      if (word !== undefined) words.push(word)
      word = undefined
    } else if (operators.has(sign) && !literal.includes(sign) && !isHarmless(sign, word, command.charAt(at + 1)))
      return { kind: 'shell', sign: sign === '\n' ? 'a line break' : sign }
    else word = (word ?? '') + sign
  }
  if (quote !== undefined) return { kind: 'broken', why: `a ${quote} is not closed` }
  if (word !== undefined) words.push(word)
  return words.length === 0 ? { kind: 'broken', why: 'it is empty' } : { kind: 'words', words }
}

/** Signs that mean something at certain places only: `a~`, `a#b`, `!=`, `{}`. */
function isHarmless(sign: string, word: string | undefined, next: string): boolean {
  if (sign === '~' || sign === '#') return word !== undefined
  if (sign === '!') return true
  if (sign === '{') return next === '}'
  return sign === '}' && (word?.endsWith('{') ?? false)
}
