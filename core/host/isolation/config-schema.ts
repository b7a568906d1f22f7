import * as v from 'valibot'
import { marksOf, unwrap } from '../../config/shape.ts'
import type { Schema } from '../../config/shape.ts'
import { isObject, omitUndefined } from '../../schema/object.ts'

interface SchemaDescription {
  readonly type: string
  readonly optional?: boolean
  readonly secret?: boolean
  readonly fileOnly?: boolean
  readonly reason?: string
  readonly description?: string
  readonly limits?: Readonly<Record<string, number>>
  readonly options?: readonly (string | number)[]
  readonly entries?: Readonly<Record<string, SchemaDescription>>
  readonly item?: SchemaDescription
}
const LIMITS = ['min_length', 'max_length', 'min_value', 'max_value'] as const
const MAX_DEPTH = 8

/** What the daemon needs of a schema in another process. Defaults and further checks stay there. */
export function describeSchema(schema: Schema): SchemaDescription {
  const shape = unwrap(schema) as Schema & {
    readonly entries?: Readonly<Record<string, Schema>>
    readonly item?: Schema
    readonly value?: Schema
    readonly options?: readonly unknown[]
    readonly pipe?: readonly { readonly type: string; readonly requirement?: unknown }[]
  }
  const marks = marksOf(schema)
  const limits = (shape.pipe ?? []).flatMap(({ type, requirement }) =>
    LIMITS.some((one) => one === type) && typeof requirement === 'number' ? [[type, requirement] as const] : [],
  )
  const inner = shape.item ?? (shape.type === 'record' ? shape.value : undefined)
  return omitUndefined({
    type: shape.type,
    optional: 'wrapped' in schema || undefined,
    secret: typeof marks['secret'] === 'boolean' ? marks['secret'] : undefined,
    fileOnly: typeof marks['file_only'] === 'boolean' ? marks['file_only'] : undefined,
    reason: typeof marks['reason'] === 'string' ? marks['reason'] : undefined,
    description: v.getDescription(schema as Parameters<typeof v.getDescription>[0]),
    limits: limits.length > 0 ? Object.fromEntries(limits) : undefined,
    options: shape.type === 'picklist' ? shape.options?.map(String) : undefined,
    entries:
      shape.entries &&
      Object.fromEntries(Object.entries(shape.entries).map(([key, entry]) => [key, describeSchema(entry)])),
    item: inner && describeSchema(inner),
  })
}

/** A schema that accepts at least what the described one does, with the same keys and marks. */
export function readSchema(description: unknown, depth = 0): Schema {
  if (!isObject(description) || depth > MAX_DEPTH) return v.unknown()
  const { optional, secret, fileOnly, reason, description: text } = description
  const marks = omitUndefined({
    secret: typeof secret === 'boolean' ? secret : undefined,
    file_only: typeof fileOnly === 'boolean' ? fileOnly : undefined,
    reason: typeof reason === 'string' ? reason : undefined,
  })
  const base = v.pipe(
    readType(description, depth),
    v.metadata(marks),
    v.description(typeof text === 'string' ? text.slice(0, 500) : ''),
  )
  return optional === true ? v.optional(base) : base
}

function readType(description: Readonly<Record<string, unknown>>, depth: number): Schema {
  const { type, entries, item, options, limits } = description
  const limit = (name: (typeof LIMITS)[number], otherwise: number): number => {
    const found = isObject(limits) ? limits[name] : undefined
    return typeof found === 'number' ? found : otherwise
  }
  if (isObject(entries)) {
    const read = Object.fromEntries(Object.entries(entries).map(([key, one]) => [key, readSchema(one, depth + 1)]))
    return type === 'strict_object' ? v.strictObject(read) : type === 'object' ? v.object(read) : v.looseObject(read)
  }
  switch (type) {
    case 'string':
      return v.pipe(
        v.string(),
        v.minLength(limit('min_length', 0)),
        v.maxLength(limit('max_length', Number.MAX_SAFE_INTEGER)),
      )
    case 'number':
      return v.pipe(
        v.number(),
        v.minValue(limit('min_value', -Number.MAX_VALUE)),
        v.maxValue(limit('max_value', Number.MAX_VALUE)),
      )
    case 'boolean':
      return v.boolean()
    case 'picklist':
      return Array.isArray(options) ? v.picklist(options.map(String)) : v.string()
    case 'array':
      return v.array(readSchema(item, depth + 1))
    case 'record':
      return v.record(v.string(), readSchema(item, depth + 1))
    default:
      return v.unknown()
  }
}
