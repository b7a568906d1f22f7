/**
 * Whether a text fits a pattern in which `*` stands for any characters, none included. Never more steps than the two
 * lengths multiplied, because patterns come from outside and must not be able to stall the process: no regular
 * expression is made.
 */
export function matchesWildcard(pattern: string, text: string): boolean {
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
