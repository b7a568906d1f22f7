import { isObject } from './object.ts'

type Schema = Readonly<Record<string, unknown>>
/** Deep enough for every schema that a person writes; ends a schema that refers to itself. */
const MAX_DEPTH = 64
/** One that refers to itself twice would take more with each level: the check ends after some tenths of a second. */
const MAX_STEPS = 200_000

interface Check {
  readonly root: unknown
  /** Long texts that are compared or followed count for more than one. */
  steps: number
}
const CHARS_OF_A_STEP = 64

/**
 * Tells why a value does not fit a JSON schema, and where; `undefined` when it fits. Unknown keywords are not checked.
 * It reads the schema and generates no code from it: schemas come from callers, and compiling validators must not be
 * given untrusted ones. A schema that takes more than 200,000 steps for the value is a fault.
 */
export function firstFault(value: unknown, schema: unknown): string | undefined {
  const check: Check = { root: schema, steps: 0 }
  const fault = faultOf(check, value, schema, '', 0)
  return check.steps > MAX_STEPS ? `the schema takes more than ${MAX_STEPS} steps to check this value` : fault
}

function faultOf(check: Check, value: unknown, schema: unknown, at: string, depth: number): string | undefined {
  // As if it fitted: what was found so far does not count any more.
  if (++check.steps > MAX_STEPS) return undefined
  if (schema === false) return `${place(at)} must not be there`
  if (!isObject(schema) || depth > MAX_DEPTH) return undefined
  if (typeof schema['$ref'] === 'string') return faultOf(check, value, follow(check, schema['$ref']), at, depth + 1)
  const inner: Inner = (part, each, where) => faultOf(check, part, each, where, depth + 1)
  return (
    valueFault(check, value, schema, at) ??
    combinationFault(value, schema, at, inner) ??
    bounds(value, schema, at) ??
    partsFault(value, schema, at, inner)
  )
}

type Inner = (part: unknown, schema: unknown, at: string) => string | undefined

function valueFault(check: Check, value: unknown, schema: Schema, at: string): string | undefined {
  const types = [schema['type']].flat().filter((type) => typeof type === 'string')
  if (types.length > 0 && !types.some((type) => isType(value, type)))
    return `${place(at)} must be ${types.join(' or ')}`
  if (Array.isArray(schema['enum']) && !includes(check, schema['enum'], value))
    return `${place(at)} must be one of ${JSON.stringify(schema['enum'])}`
  if ('const' in schema && !includes(check, [schema['const']], value))
    return `${place(at)} must be ${JSON.stringify(schema['const'])}`
  return undefined
}
function combinationFault(value: unknown, schema: Schema, at: string, inner: Inner): string | undefined {
  for (const each of list(schema['allOf'])) {
    const fault = inner(value, each, at)
    if (fault !== undefined) return fault
  }
  return (
    fittingFault(value, list(schema['anyOf']), at, inner, Infinity) ??
    fittingFault(value, list(schema['oneOf']), at, inner, 1)
  )
}
/** The fault of the first option when none fits; at most `most` of them may. */
function fittingFault(
  value: unknown,
  options: readonly unknown[],
  at: string,
  inner: Inner,
  most: number,
): string | undefined {
  let [first, fitting]: [string | undefined, number] = [undefined, 0]
  for (const each of options) {
    const fault = inner(value, each, at)
    first ??= fault
    if (fault !== undefined) continue
    if (most === Infinity) return undefined
    if (++fitting > most) return `${place(at)} fits more than one of its alternatives`
  }
  return fitting === 0 ? first : undefined
}
function partsFault(value: unknown, schema: Schema, at: string, inner: Inner): string | undefined {
  if (Array.isArray(value)) return items(value, schema, at, inner)
  return isObject(value) ? members(value, schema, at, inner) : undefined
}

function members(value: Schema, schema: Schema, at: string, inner: Inner): string | undefined {
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  for (const name of list(schema['required']))
    if (typeof name === 'string' && !Object.hasOwn(value, name)) return `${place(at)} lacks "${name}"`
  for (const [name, part] of Object.entries(value)) {
    const where = at === '' ? name : `${at}.${name}`
    const known = Object.hasOwn(properties, name)
    if (!known && schema['additionalProperties'] === false) return `${place(at)} must not have "${name}"`
    const fault = inner(part, known ? properties[name] : (schema['additionalProperties'] ?? true), where)
    if (fault !== undefined) return fault
  }
  return undefined
}
function items(value: readonly unknown[], schema: Schema, at: string, inner: Inner): string | undefined {
  const first = list(schema['prefixItems'])
  for (const [index, part] of value.entries()) {
    const fault = inner(part, first[index] ?? schema['items'] ?? true, `${at}[${index}]`)
    if (fault !== undefined) return fault
  }
  return undefined
}
function bounds(value: unknown, schema: Schema, at: string): string | undefined {
  if (typeof value === 'number') return boundsFault(value, schema, at, 'minimum', 'maximum')
  if (typeof value === 'string') return boundsFault(value.length, schema, at, 'minLength', 'maxLength')
  return Array.isArray(value) ? boundsFault(value.length, schema, at, 'minItems', 'maxItems') : undefined
}
function boundsFault(size: number, schema: Schema, at: string, minKey: string, maxKey: string): string | undefined {
  const min = schema[minKey]
  const max = schema[maxKey]
  if (typeof min === 'number' && size < min) return `${place(at)} is below ${minKey} ${min}`
  if (typeof max === 'number' && size > max) return `${place(at)} is above ${maxKey} ${max}`
  return undefined
}

function isType(value: unknown, type: string): boolean {
  switch (type) {
    case 'object':
      return isObject(value)
    case 'array':
      return Array.isArray(value)
    case 'integer':
      return Number.isInteger(value)
    case 'null':
      return value === null
    default:
      return typeof value === type
  }
}
function follow(check: Check, reference: string): unknown {
  check.steps += reference.length / CHARS_OF_A_STEP
  let at: unknown = check.root
  for (const step of reference.replace(/^#\/?/, '').split('/').filter(Boolean))
    at = isObject(at) && Object.hasOwn(at, step) ? at[step] : undefined
  return at ?? true
}
function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
function includes(check: Check, options: readonly unknown[], value: unknown): boolean {
  const toText = (each: unknown): string => {
    const text = JSON.stringify(each) ?? ''
    check.steps += text.length / CHARS_OF_A_STEP
    return text
  }
  const text = toText(value)
  return options.some((each) => toText(each) === text)
}
function place(at: string): string {
  return at === '' ? 'the value' : at
}
