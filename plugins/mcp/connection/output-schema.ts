import { isObject } from 'svc/sdk'

const MAX_DEPTH = 32
/** Regular expressions of a stranger can take for ever, and references to other documents lead anywhere. */
const DROPPED: ReadonlySet<string> = new Set(['pattern', 'patternProperties', 'format', '$id', '$schema', '$anchor'])

/** The schema with what is safe to check. */
export function safeSchema(schema: unknown, depth = 0): unknown {
  if (depth > MAX_DEPTH) return true
  if (Array.isArray(schema)) return schema.map((item) => safeSchema(item, depth + 1))
  if (!isObject(schema)) return schema
  const entries = Object.entries(schema).filter(
    ([key, value]) =>
      !(DROPPED.has(key) && (typeof value === 'string' || key === 'patternProperties')) &&
      !(key === '$ref' && !(typeof value === 'string' && value.startsWith('#'))),
  )
  return Object.fromEntries(entries.map(([key, value]) => [key, safeSchema(value, depth + 1)]))
}
