import { isObject } from './object.ts'

type Schema = Readonly<Record<string, unknown>>
/** Deep enough for every schema that a person writes; ends a schema that refers to itself. */
const MAX_DEPTH = 64

/**
 * Tells why a value does not fit a JSON schema, and where; `undefined` when it fits. Unknown keywords are not checked.
 * It reads the schema and generates no code from it: schemas come from callers, and compiling validators must not be
 * given untrusted ones.
 */
export function firstFault(
  value: unknown,
  schema: unknown,
  root: unknown = schema,
  at = '',
  depth = 0,
): string | undefined {
  if (schema === false) return `${place(at)} must not be there`
  if (!isObject(schema) || depth > MAX_DEPTH) return undefined
  if (typeof schema['$ref'] === 'string') return firstFault(value, follow(root, schema['$ref']), root, at, depth + 1)
  const inner = (part: unknown, each: unknown, where: string): string | undefined =>
    firstFault(part, each, root, where, depth + 1)
  return (
    valueFault(value, schema, at) ??
    combinationFault(value, schema, at, inner) ??
    bounds(value, schema, at) ??
    partsFault(value, schema, at, inner)
  )
}

type Inner = (part: unknown, schema: unknown, at: string) => string | undefined

function valueFault(value: unknown, schema: Schema, at: string): string | undefined {
  const types = [schema['type']].flat().filter((type) => typeof type === 'string')
  if (types.length > 0 && !types.some((type) => isType(value, type)))
    return `${place(at)} must be ${types.join(' or ')}`
  if (Array.isArray(schema['enum']) && !schema['enum'].some((each) => same(each, value)))
    return `${place(at)} must be one of ${JSON.stringify(schema['enum'])}`
  if ('const' in schema && !same(schema['const'], value))
    return `${place(at)} must be ${JSON.stringify(schema['const'])}`
  return undefined
}
function combinationFault(value: unknown, schema: Schema, at: string, inner: Inner): string | undefined {
  for (const each of list(schema['allOf'])) {
    const fault = inner(value, each, at)
    if (fault !== undefined) return fault
  }
  for (const key of ['anyOf', 'oneOf']) {
    const options = list(schema[key])
    const faults = options.map((each) => inner(value, each, at))
    const fitting = faults.filter((fault) => fault === undefined).length
    if (options.length > 0 && fitting === 0) return faults[0]
    if (key === 'oneOf' && fitting > 1) return `${place(at)} fits more than one of its alternatives`
  }
  return undefined
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
function follow(root: unknown, reference: string): unknown {
  let at: unknown = root
  for (const step of reference.replace(/^#\/?/, '').split('/').filter(Boolean))
    at = isObject(at) && Object.hasOwn(at, step) ? at[step] : undefined
  return at ?? true
}
function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
function place(at: string): string {
  return at === '' ? 'the value' : at
}
