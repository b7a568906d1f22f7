/** A character behind a backslash, a class of characters, or one character. */
const TOKENS = /\\(?:[pP]\{[^}]*\}|[\s\S])|\[(?:\\[\s\S]|[^\]\\])*\]|[\s\S]/g
const MAX_REPEATS = 1000

/**
 * What a pattern has that RE2 lacks, so that no text a stranger writes takes longer than its length; `undefined` if
 * nothing.
 */
export function patternProblem(pattern: string): string | undefined {
  const tokens = pattern.match(TOKENS) ?? []
  if (tokens.some((token) => /^\\(?:[1-9]|k)/.test(token))) return 'back references'
  if (tokens.some((token) => /\\[pP]\{[^}]*=/.test(token)))
    return String.raw`properties with a value, such as \p{Script=Greek}`
  const outside = tokens.filter((token) => token.length === 1).join('')
  if (/\(\?<?[=!]/.test(outside)) return 'look-around'
  const repeats = [...outside.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].flatMap((match) => match.slice(1).map(Number))
  return repeats.some((count) => count > MAX_REPEATS) ? `more than ${MAX_REPEATS} repeats` : undefined
}
