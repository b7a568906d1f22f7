// The keywords of JSON Schema that structured outputs support. Source:
// https://platform.claude.com/docs/en/build-with-claude/structured-outputs
const KEYWORDS = new Set([
  'type',
  'properties',
  'required',
  'items',
  'enum',
  'const',
  'anyOf',
  'allOf',
  '$ref',
  '$defs',
  'definitions',
  'default',
  'title',
  'description',
  'additionalProperties',
  '$schema',
  'format',
])
const FORMATS = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'])
const MAX_DEPTH = 50

/** Whether the vendor accepts the schema: every object is closed, and every keyword is supported. */
export function isSupportedSchema(schema: unknown, depth = 0): boolean {
  if (depth > MAX_DEPTH || typeof schema !== 'object' || schema === null || Array.isArray(schema)) return false
  const entries = Object.entries(schema)
  const isClosed =
    !('properties' in schema || ('type' in schema && schema.type === 'object')) ||
    ('additionalProperties' in schema && schema.additionalProperties === false)
  return (
    isClosed &&
    entries.every(([key, value]) => {
      if (!KEYWORDS.has(key)) return false
      if (key === 'items') return isSupportedSchema(value, depth + 1)
      if (key === 'anyOf' || key === 'allOf')
        return Array.isArray(value) && value.every((each) => isSupportedSchema(each, depth + 1))
      if (key === 'properties' || key === '$defs' || key === 'definitions')
        return (
          typeof value === 'object' &&
          value !== null &&
          Object.values(value).every((each) => isSupportedSchema(each, depth + 1))
        )
      return key === 'format' ? typeof value === 'string' && FORMATS.has(value) : true
    })
  )
}
