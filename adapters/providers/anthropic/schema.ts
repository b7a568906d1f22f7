// What a schema may hold for an answer to be held to it. Source:
// https://platform.claude.com/docs/en/build-with-claude/structured-outputs
const known = new Set([
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
const formats = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'])
const MAX_DEPTH = 50

/** Whether the vendor takes the schema: every object closed, and nothing in it that its grammar does not know. */
export function constrains(schema: unknown, depth = 0): boolean {
  if (depth > MAX_DEPTH || typeof schema !== 'object' || schema === null || Array.isArray(schema)) return false
  const entries = Object.entries(schema)
  const closed =
    !('properties' in schema || ('type' in schema && schema.type === 'object')) ||
    ('additionalProperties' in schema && schema.additionalProperties === false)
  return (
    closed &&
    entries.every(([key, value]) => {
      if (!known.has(key)) return false
      if (key === 'items') return constrains(value, depth + 1)
      if (key === 'anyOf' || key === 'allOf')
        return Array.isArray(value) && value.every((each) => constrains(each, depth + 1))
      if (key === 'properties' || key === '$defs' || key === 'definitions')
        return (
          typeof value === 'object' &&
          value !== null &&
          Object.values(value).every((each) => constrains(each, depth + 1))
        )
      return key === 'format' ? typeof value === 'string' && formats.has(value) : true
    })
  )
}
