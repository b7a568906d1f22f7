/** As much of a JSON Schema of the live OpenAPI document as requests are made from. */
import type { Json } from './json.ts'
export interface BodySchema {
  readonly type?: string
  readonly nullable?: boolean
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly format?: string
  readonly pattern?: string
  readonly minLength?: number
  readonly minimum?: number
  readonly minItems?: number
  readonly default?: unknown
  readonly properties?: Readonly<Record<string, BodySchema>>
  readonly required?: readonly string[]
  readonly items?: BodySchema
  readonly anyOf?: readonly BodySchema[]
  readonly oneOf?: readonly BodySchema[]
  readonly allOf?: readonly BodySchema[]
}
export interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema?: BodySchema
}
export interface Operation {
  readonly method: string
  readonly path: string
  readonly parameters: readonly Parameter[]
  readonly body: BodySchema | undefined
  /** Of the body, where the route shows one. */
  readonly example: unknown
}
/** A field of a body, by the keys that lead to it. */
export interface Field {
  readonly keys: readonly (string | number)[]
  readonly schema: BodySchema
}

const choices = (schema: BodySchema): readonly BodySchema[] | undefined => schema.anyOf ?? schema.oneOf

/** Every route of a document. */
export function operations(document: {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>
}): readonly Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, found]) => {
      const json = found.requestBody?.content?.['application/json']
      return {
        method: method.toUpperCase(),
        path,
        parameters: found.parameters ?? [],
        body: json?.schema,
        example: json?.example,
      }
    }),
  )
}

/** The fields of a body, the ones inside others too. */
export function fieldsOf(schema: BodySchema, keys: readonly (string | number)[] = [], depth = 4): readonly Field[] {
  if (depth === 0) return []
  const within = (part: BodySchema, key: string | number): readonly Field[] => [
    { keys: [...keys, key], schema: part },
    ...fieldsOf(part, [...keys, key], depth - 1),
  ]
  const own = [
    ...Object.entries(schema.properties ?? {}).flatMap(([name, part]) => within(part, name)),
    ...(schema.items ? within(schema.items, 0) : []),
    ...[...(choices(schema) ?? []), ...(schema.allOf ?? [])].flatMap((part) => fieldsOf(part, keys, depth)),
  ]
  const known = new Map<string, Field>()
  for (const field of own) {
    const name = field.keys.join('.')
    const there = known.get(name)
    // The same field in several forms of a body takes what any of them takes.
    known.set(name, there ? { ...there, schema: { anyOf: [there.schema, field.schema] } } : field)
  }
  return [...known.values()]
}

/** A value that fits, as far as a schema can say. `sample` knows what ids and names there are. */
export function sampleOf(
  schema: BodySchema,
  name: string,
  given: (name: string, schema: BodySchema) => unknown,
): unknown {
  const known = given(name, schema)
  if (known !== undefined) return known
  if (schema.default !== undefined) return schema.default
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  const [choice] = choices(schema) ?? schema.allOf ?? []
  if (choice) return sampleOf(choice, name, given)
  switch (schema.type) {
    case 'object':
      return Object.fromEntries(
        (schema.required ?? []).map((key) => [key, sampleOf(schema.properties?.[key] ?? {}, key, given)]),
      )
    case 'array':
      return Array.from({ length: schema.minItems ?? 0 }, () => sampleOf(schema.items ?? {}, name, given))
    case 'integer':
    case 'number':
      return schema.minimum ?? 1
    case 'boolean':
      return false
    case 'string':
      return schema.format === 'uri' || schema.pattern?.includes('http')
        ? 'https://example.com/'
        : 'x'.repeat(Math.max(1, schema.minLength ?? 1))
    default:
      return 'x'
  }
}

/** Whether the kind of a value is one that the schema takes. */
export function takes(schema: BodySchema, value: unknown): boolean {
  if (value === null && schema.nullable) return true
  const parts = choices(schema) ?? schema.allOf
  if (parts) return parts.some((part) => takes(part, value))
  if (schema.enum) return schema.enum.includes(value)
  switch (schema.type) {
    case undefined:
      return true
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value)
    case 'array':
      return Array.isArray(value)
    case 'integer':
      return Number.isInteger(value)
    case 'number':
    case 'string':
    case 'boolean':
      return typeof value === schema.type
    default:
      return true
  }
}

/** A copy of a body with one value replaced, made on the way where it is not there. */
export function withValue(body: unknown, keys: readonly (string | number)[], value: unknown): unknown {
  const [key, ...rest] = keys
  if (key === undefined) return value
  if (typeof key === 'number') return [withValue(Array.isArray(body) ? body[0] : undefined, rest, value)]
  const copy: Record<string, unknown> =
    typeof body === 'object' && body !== null && !Array.isArray(body) ? { ...body } : {}
  copy[key] = withValue(copy[key], rest, value)
  return copy
}
