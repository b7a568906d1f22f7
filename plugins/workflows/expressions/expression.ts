import { messageOf } from 'svc/internal'
import { isObject, readJson } from 'svc/sdk'
import { parseNode } from './parse.ts'
import type { Comparison, Node } from './parse.ts'
import { ExpressionError } from './tokens.ts'

/** Values by name. A text that is JSON can be read by a path into it. */
export type Scope = Readonly<Record<string, unknown>>

/**
 * A condition of a workflow: comparisons, `contains`, `matches` (RE2, linear in the text), `and`, `or`, `not`, `length()`
 * and paths into JSON. Evaluating it always ends, throws nothing and has no effect: what is missing is `null`, and values
 * of different types are neither equal nor in any order.
 */
export interface Expression {
  readonly text: string
  /** The names it reads, each once. */
  readonly names: readonly string[]
  evaluate(scope: Scope): boolean
}

type Matcher = (pattern: string, text: string) => boolean
const MAX_PATTERN = 500

/** Throws `ExpressionError` with the character that is wrong. */
export async function compileExpression(text: string): Promise<Expression> {
  const root = parseNode(text)
  const names = new Set<string>()
  const patterns: { readonly pattern: string; readonly at: number }[] = []
  let needsPatterns = false
  for (const node of walk(root)) {
    if (node.kind === 'path') names.add(node.name)
    if (node.kind !== 'compare' || node.by !== 'matches') continue
    needsPatterns = true
    if (node.right.kind === 'literal') patterns.push({ pattern: String(node.right.value), at: node.at })
  }
  const matches = needsPatterns ? await createMatcher(patterns, text) : () => false
  return {
    text,
    names: [...names],
    evaluate: (scope) => isTrue(evaluate(root, scope, matches)),
  }
}

function* walk(node: Node): Generator<Node> {
  yield node
  if ('of' in node) yield* walk(node.of)
  if ('left' in node) {
    yield* walk(node.left)
    yield* walk(node.right)
  }
}

/** The patterns that are known are checked now; one that comes from a value and is wrong matches nothing. */
async function createMatcher(
  known: readonly { readonly pattern: string; readonly at: number }[],
  text: string,
): Promise<Matcher> {
  const { RE2JS } = await import('re2js')
  const compiled = new Map<string, InstanceType<typeof RE2JS>>()
  const compile = (pattern: string) => {
    if (pattern.length > MAX_PATTERN) throw new Error(`longer than ${MAX_PATTERN} characters`)
    return RE2JS.compile(pattern)
  }
  for (const { pattern, at } of known) {
    try {
      compiled.set(pattern, compile(pattern))
    } catch (error) {
      const why = messageOf(error)
      throw new ExpressionError(`The pattern is not valid (${why})`, at, text)
    }
  }
  return (pattern, value) => {
    try {
      return (compiled.get(pattern) ?? compile(pattern)).matcher(value).find()
    } catch {
      return false // A pattern out of a value is data, and data may be anything.
    }
  }
}

function evaluate(node: Node, scope: Scope, matches: Matcher): unknown {
  switch (node.kind) {
    case 'literal':
      return node.value
    case 'path':
      return readPath(Object.hasOwn(scope, node.name) ? scope[node.name] : null, node.keys)
    case 'length':
      return lengthOf(evaluate(node.of, scope, matches))
    case 'not':
      return !isTrue(evaluate(node.of, scope, matches))
    case 'and':
      return isTrue(evaluate(node.left, scope, matches)) && isTrue(evaluate(node.right, scope, matches))
    case 'or':
      return isTrue(evaluate(node.left, scope, matches)) || isTrue(evaluate(node.right, scope, matches))
    case 'compare':
      return compare(node.by, evaluate(node.left, scope, matches), evaluate(node.right, scope, matches), matches)
  }
}

/** As people expect of a text: empty, `false` and `0` are false, also as texts. */
function isTrue(value: unknown): boolean {
  if (typeof value === 'string') return !['', 'false', '0'].includes(value.trim().toLowerCase())
  return Boolean(value)
}

/** What a path leads to; `null` where it leads nowhere. A text is read as JSON. */
export function readPath(root: unknown, keys: readonly (string | number)[]): unknown {
  let value = keys.length > 0 && typeof root === 'string' ? parseText(root) : (root ?? null)
  for (const key of keys) {
    if (Array.isArray(value) && typeof key === 'number') value = value[key] ?? null
    else if (isObject(value) && Object.hasOwn(value, key)) value = value[key] ?? null
    else return null
  }
  return value
}
function parseText(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return null // The output of a model that was to be JSON and is not.
  }
}

function lengthOf(value: unknown): number {
  if (typeof value === 'string' || Array.isArray(value)) return value.length
  return isObject(value) ? Object.keys(value).length : 0
}

function compare(by: Comparison, left: unknown, right: unknown, matches: Matcher): boolean {
  switch (by) {
    case '==':
      return isEqual(left, right)
    case '!=':
      return !isEqual(left, right)
    case 'contains':
      return contains(left, right)
    case 'matches':
      return typeof left === 'string' && typeof right === 'string' && matches(right, left)
    default:
      return isInOrder(by, left, right)
  }
}
/** A number equals the text that writes it: what models say are texts. */
function isEqual(left: unknown, right: unknown): boolean {
  if (typeof left === 'number' && typeof right === 'string') return left === toNumber(right)
  if (typeof left === 'string' && typeof right === 'number') return toNumber(left) === right
  return left === right
}
function contains(left: unknown, right: unknown): boolean {
  if (Array.isArray(left)) return left.some((element) => isEqual(element, right))
  if (isObject(left)) return typeof right === 'string' && Object.hasOwn(left, right)
  return typeof left === 'string' && right !== null && left.toLowerCase().includes(String(right).toLowerCase())
}
function isInOrder(by: '<' | '<=' | '>' | '>=', left: unknown, right: unknown): boolean {
  const areTexts = typeof left === 'string' && typeof right === 'string'
  const [first, second] = areTexts ? [left, right] : [toNumber(left), toNumber(right)]
  if (first === undefined || second === undefined) return false
  if (by === '<') return first < second
  if (by === '<=') return first <= second
  return by === '>' ? first > second : first >= second
}
function toNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  return typeof value === 'string' && /^\s*-?\d+(?:\.\d+)?\s*$/.test(value) ? Number(value) : undefined
}
