import type * as v from 'valibot'
import { readOwnJson } from './nesting.ts'
import { isObject } from './object.ts'

export type JsonObject = Record<string, unknown>
/**
 * Turns schemas into the dialect of OpenAPI 3.0; recursive parts go to `components.schemas`, where every `$ref` points.
 */
export interface SchemaWriter {
  /** `input` for what a caller sends, `output` for what it gets. `name` is the prefix of the parts that need a name. */
  write(schema: v.GenericSchema, mode: 'input' | 'output', name: string): JsonObject
  readonly components: JsonObject
}

/** The converter is loaded when the first document is asked for. */
export async function openApiSchemas(): Promise<SchemaWriter> {
  const { toJsonSchema } = await import('@valibot/to-json-schema')
  const components: JsonObject = {}
  return {
    components,
    write(schema, mode, name) {
      // What cannot be said in JSON Schema is left open: a document that claims less is still true.
      const raw = plain(toJsonSchema(schema, { target: 'openapi-3.0', typeMode: mode, errorMode: 'ignore' }))
      const { $defs, ...body } = raw
      const names = new Map<string, string>()
      const parts = isObject($defs) ? $defs : {}
      for (const key of Object.keys(parts)) names.set(`#/$defs/${key}`, `${name}_${key.replace(/[^\w.-]/g, '_')}`)
      for (const [key, part] of Object.entries(parts))
        components[names.get(`#/$defs/${key}`) ?? key] = dialect(part, names)
      return dialect(body, names)
    },
  }
}

const plain = (value: object): JsonObject => readOwnJson(JSON.stringify(value)) as JsonObject

const keywords = new Set([
  'title',
  'multipleOf',
  'maximum',
  'exclusiveMaximum',
  'minimum',
  'exclusiveMinimum',
  'maxLength',
  'minLength',
  'pattern',
  'maxItems',
  'minItems',
  'uniqueItems',
  'maxProperties',
  'minProperties',
  'required',
  'enum',
  'type',
  'allOf',
  'oneOf',
  'anyOf',
  'not',
  'items',
  'properties',
  'additionalProperties',
  'description',
  'format',
  'default',
  'nullable',
  'readOnly',
  'writeOnly',
  'example',
  'deprecated',
])

/** Keeps the keywords of OpenAPI 3.0 and points references at the components. */
function dialect(node: unknown, names: ReadonlyMap<string, string>): JsonObject {
  if (!isObject(node)) return {}
  if (typeof node['$ref'] === 'string')
    return { $ref: `#/components/schemas/${names.get(node['$ref']) ?? node['$ref']}` }
  const out: JsonObject = {}
  for (const [key, value] of Object.entries(node)) {
    if (key === 'secret') {
      if (value === true) out['writeOnly'] = true
      continue
    }
    if (!keywords.has(key)) continue
    const converted = convertKeyword(key, value, names)
    if (converted !== undefined) out[key] = converted
  }
  if (out['type'] === 'array' && out['items'] === undefined) out['items'] = {}
  convertEnum(out)
  return out['nullable'] === true && out['type'] === undefined ? nullableParts(out) : out
}

/** The value of one keyword with the schemas inside it converted; `undefined` where it says nothing. */
function convertKeyword(key: string, value: unknown, names: ReadonlyMap<string, string>): unknown {
  switch (key) {
    case 'properties':
      return isObject(value)
        ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, dialect(inner, names)]))
        : value
    case 'items':
    case 'not':
      return dialect(value, names)
    case 'additionalProperties':
      return typeof value === 'boolean' ? value : dialect(value, names)
    case 'allOf':
    case 'oneOf':
    case 'anyOf':
      return Array.isArray(value) ? value.map((inner) => dialect(inner, names)) : value
    case 'required':
      return Array.isArray(value) && value.length === 0 ? undefined : value
    default:
      return value
  }
}

/** Gives a list of values the type that `nullable` needs beside it. */
function convertEnum(out: JsonObject): void {
  // `nullable` has a meaning beside `type` only.
  if (Array.isArray(out['enum']) && out['enum'].every((value) => typeof value === 'string')) out['type'] = 'string'
  if (Array.isArray(out['enum']) && out['enum'].includes(null)) out['nullable'] = true
  // Null is a value like any other: it has to be in the list as well.
  else if (Array.isArray(out['enum']) && out['nullable'] === true) out['enum'] = [...out['enum'], null]
}

/**
 * `nullable` has a meaning beside `type` only: one of the variants gets it, and what may be anything may be null
 * anyway.
 */
function nullableParts(written: JsonObject): JsonObject {
  const { nullable: _, ...node } = written
  for (const key of ['anyOf', 'oneOf']) {
    const parts = node[key]
    if (!Array.isArray(parts)) continue
    const at = parts.findIndex((part) => isObject(part) && part['type'] !== undefined)
    return {
      ...node,
      [key]: parts.map((part: unknown, index) => (index === at && isObject(part) ? { ...part, nullable: true } : part)),
    }
  }
  return node
}
