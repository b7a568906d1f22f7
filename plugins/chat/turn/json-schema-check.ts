type Schema = Readonly<Record<string, unknown>>
/** Deep enough for every schema a person writes; a schema that refers to itself for ever ends here. */
const MAX_DEPTH = 64

/** Why a value does not fit a JSON schema, with the place; `undefined` when it does. Keywords it does not know are not checked. */
export function firstFault(
  value: unknown,
  schema: unknown,
  root: unknown = schema,
  at = '',
  depth = 0,
): string | undefined {
  if (schema === true || !isTable(schema) || depth > MAX_DEPTH)
    return schema === false ? `${place(at)} must not be there` : undefined
  if (typeof schema['$ref'] === 'string') return firstFault(value, follow(root, schema['$ref']), root, at, depth + 1)
  const inner = (part: unknown, each: unknown, where: string): string | undefined =>
    firstFault(part, each, root, where, depth + 1)
  const types = [schema['type']].flat().filter((type) => typeof type === 'string')
  if (types.length > 0 && !types.some((type) => isType(value, type)))
    return `${place(at)} must be ${types.join(' or ')}`
  if (Array.isArray(schema['enum']) && !schema['enum'].some((each) => same(each, value)))
    return `${place(at)} must be one of ${JSON.stringify(schema['enum'])}`
  if ('const' in schema && !same(schema['const'], value))
    return `${place(at)} must be ${JSON.stringify(schema['const'])}`
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
  return (
    bounds(value, schema, at) ??
    (Array.isArray(value)
      ? items(value, schema, at, inner)
      : isTable(value)
        ? members(value, schema, at, inner)
        : undefined)
  )
}

type Inner = (part: unknown, schema: unknown, at: string) => string | undefined

function members(value: Schema, schema: Schema, at: string, inner: Inner): string | undefined {
  const properties = isTable(schema['properties']) ? schema['properties'] : {}
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
  const size =
    typeof value === 'number' ? value : typeof value === 'string' || Array.isArray(value) ? value.length : undefined
  if (size === undefined) return undefined
  const [least, most] =
    typeof value === 'number'
      ? ['minimum', 'maximum']
      : typeof value === 'string'
        ? ['minLength', 'maxLength']
        : ['minItems', 'maxItems']
  const [low, high] = [schema[least ?? ''], schema[most ?? '']]
  if (typeof low === 'number' && size < low) return `${place(at)} is below ${least} ${low}`
  if (typeof high === 'number' && size > high) return `${place(at)} is above ${most} ${high}`
  return undefined
}

function isType(value: unknown, type: string): boolean {
  switch (type) {
    case 'object':
      return isTable(value)
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
    at = isTable(at) && Object.hasOwn(at, step) ? at[step] : undefined
  return at ?? true
}
function isTable(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}
function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
function place(at: string): string {
  return at === '' ? 'the answer' : at
}
