/**
 * Whether a list of patterns grants a name. `*` stands for any run of characters, also none; `self.` before a pattern means the
 * agent's own names, which is where `own` says this one is.
 */
export function grants(patterns: readonly string[], name: string, own: boolean): boolean {
  return patterns.some((pattern) => matches(pattern, name) || (own && matches(pattern, `self.${name}`)))
}

/** Never more steps than the two lengths multiplied: patterns come from manifests and must not be able to stall the process. */
export function matches(pattern: string, text: string): boolean {
  let at = 0
  let from = 0
  let star = -1
  let mark = 0
  while (at < text.length) {
    if (pattern[from] === '*') {
      star = from++
      mark = at
    } else if (pattern[from] === text[at]) {
      from++
      at++
    } else if (star >= 0) {
      from = star + 1
      at = ++mark
    } else return false
  }
  while (pattern[from] === '*') from++
  return from === pattern.length
}
