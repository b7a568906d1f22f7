import { isObject } from '../schema/object.ts'
import { API_VERSION } from './api-version.ts'
import { PluginProblem } from './definition.ts'

/**
 * Throws `PluginProblem` if the default export of a module is a plugin for another version of the interface. Checked
 * first, because everything else may differ too.
 */
export function checkApiVersion(exported: unknown, file: string): void {
  const candidate = isObject(exported) ? exported['default'] : undefined
  if (!isObject(candidate) || candidate['apiVersion'] === undefined) return
  const { apiVersion: range, name } = candidate
  let isSupported: boolean
  try {
    if (typeof range !== 'string') throw new Error('it is no text')
    isSupported = isInRange(API_VERSION, range)
  } catch (error) {
    const text = `${file} does not define a plugin: apiVersion: must be a range of versions, such as "1" or "^1.0.0"`
    throw new PluginProblem(text, { cause: error })
  }
  if (isSupported) return
  throw new PluginProblem(
    `${file} is not loaded: apiVersion: the plugin "${String(name)}" is written for version ${range} of the plugin ` +
      `interface, and this daemon has ${API_VERSION}; install a version of the plugin or of svc that fits`,
  )
}

type Version = readonly [major: number, minor: number, patch: number]
interface Comparator {
  readonly operator: string
  readonly version: Version
  /** How many numbers the version has: `1.2` leaves the third open. */
  readonly precision: number
}

const COMPARATOR = /^(\^|~|>=|<=|>|<|=)?\s*v?(\d+)(?:\.(\d+|[xX*]))?(?:\.(\d+|[xX*]))?$/

/**
 * Whether a version is in an npm range: `1`, `1.2`, `^1.2.0`, `~1.2`, `>=1.2 <3`, `1 || 2`. Throws for an invalid
 * range.
 */
export function isInRange(version: string, range: string): boolean {
  const [actual] = parseAlternative(version)
  if (actual === undefined) throw new Error(`"${version}" is no version`)
  return range
    .split('||')
    .map(parseAlternative)
    .some((comparators) => comparators.every((comparator) => fits(actual.version, comparator)))
}

function parseAlternative(text: string): readonly Comparator[] {
  const words = text
    .trim()
    .replaceAll(/([<>=^~])\s+/g, '$1')
    .split(/\s+/)
  if (words.length === 1 && /^[xX*]$/.test(words[0] ?? '')) return []
  return words.map(parseComparator)
}
function parseComparator(word: string): Comparator {
  const match = COMPARATOR.exec(word)
  if (!match) throw new Error(`"${word}" is no range of versions`)
  const [, operator = '', ...parts] = match
  const numbers = parts.filter((part) => part !== undefined && /^\d+$/.test(part)).map(Number)
  const [major = 0, minor = 0, patch = 0] = numbers
  return { operator, version: [major, minor, patch], precision: numbers.length }
}

function fits(actual: Version, { operator, version, precision }: Comparator): boolean {
  const order = compare(actual, version)
  // How many numbers must be equal.
  const equal = (count: number): boolean => compare(actual, version, count) === 0
  if (operator === '>') return precision === 3 ? order > 0 : compare(actual, version, precision) > 0
  if (operator === '>=') return order >= 0
  if (operator === '<') return order < 0
  if (operator === '<=') return compare(actual, version, precision) <= 0
  if (operator === '~') return order >= 0 && equal(Math.min(precision, 2))
  if (operator === '^') return order >= 0 && equal(leadingOf(version, precision))
  return equal(precision)
}
/** Below 1.0.0 the first number that is not zero counts as major. */
function leadingOf([major, minor]: Version, precision: number): number {
  if (major > 0 || precision === 1) return 1
  return minor > 0 || precision === 2 ? 2 : 3
}
function compare(a: Version, b: Version, count = 3): number {
  for (let at = 0; at < count; at++) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
