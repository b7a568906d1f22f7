/** How deep a value from outside may be nested: what walks it later calls itself once for each level. */
const state = { maxDepth: 64 }

/** `http.max_json_depth`, for everything this process reads. */
export function limitNesting(levels: number): void {
  state.maxDepth = levels
}
export const nestingLimit = (): number => state.maxDepth

/**
 * A text or a value is nested deeper than the limit. A `SyntaxError`, so that whoever answers malformed text answers
 * this too.
 */
export class NestingError extends SyntaxError {
  override readonly name = 'NestingError'
  readonly maxDepth: number
  /** In the text; absent for a value. */
  readonly position: number | undefined
  constructor(maxDepth: number, position?: number) {
    super(`nested deeper than ${maxDepth} levels (http.max_json_depth)`)
    this.maxDepth = maxDepth
    this.position = position
  }
}

/** JSON from outside. Throws `SyntaxError`, and `NestingError` before anything is built. */
export function readJson(text: string, maxDepth: number = state.maxDepth): unknown {
  checkTextDepth(text, maxDepth)
  return JSON.parse(text)
}
/** JSON that this daemon wrote itself: it was checked when it came in, and a limit lowered since does not lose it. */
export function readOwnJson(text: string): unknown {
  return JSON.parse(text)
}

/** Throws `NestingError`. Counts brackets outside of strings, so it also works for texts that are not valid JSON. */
function checkTextDepth(text: string, maxDepth: number): void {
  if (!hasMoreBrackets(text, maxDepth)) return
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) at = stringEnd(text, at)
    else if (code === 0x7b || code === 0x5b) {
      if (++depth > maxDepth) throw new NestingError(maxDepth, at)
    } else if (code === 0x7d || code === 0x5d) depth--
  }
}
/** Whether it opens more brackets than this, those in strings included: hardly any text does, and most are short. */
function hasMoreBrackets(text: string, max: number): boolean {
  // Each level takes two characters.
  if (text.length <= max * 2) return false
  let found = 0
  for (const bracket of BRACKETS)
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) if (++found > max) return true
  return false
}
const BRACKETS = ['{', '[']
function stringEnd(text: string, start: number): number {
  let at = start
  for (;;) {
    at = text.indexOf('"', at + 1)
    if (at === -1) return text.length
    let slashes = 0
    while (text.charCodeAt(at - 1 - slashes) === 0x5c) slashes++
    if (slashes % 2 === 0) return at
  }
}

/**
 * The same of a value, for formats where depth does not show in brackets: `a.b.c` of TOML. Takes a moment for each value
 * in each level, also where one is referred to many times. Throws `NestingError`.
 */
export function checkDepth(value: unknown, maxDepth: number = state.maxDepth): void {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    const objects = new Set(level.filter((each) => typeof each === 'object' && each !== null))
    if (objects.size > 0 && depth >= maxDepth) throw new NestingError(maxDepth)
    level = [...objects].flatMap((each) => Object.values(each as object))
  }
}
