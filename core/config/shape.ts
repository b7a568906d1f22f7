import * as v from 'valibot'
import { namesSecret } from '../log/secret-name.ts'

export type Schema = v.GenericSchema
export type Tree = Readonly<Record<string, unknown>>

export function isTree(value: unknown): value is Tree {
  return (
    typeof value === 'object' &&
    value !== null &&
    (Object.getPrototypeOf(value) === Object.prototype || Object.getPrototypeOf(value) === null)
  )
}

/** A schema without what says only that it may be missing. */
export function unwrap(schema: Schema): Schema {
  let inner = schema
  while ('wrapped' in inner) inner = inner.wrapped as Schema
  return inner
}
/** What `v.metadata` says of a schema, at whatever layer. */
export function marksOf(schema: Schema): Readonly<Record<string, unknown>> {
  const own = v.getMetadata(schema as Parameters<typeof v.getMetadata>[0])
  return 'wrapped' in schema ? { ...marksOf(schema.wrapped as Schema), ...own } : own
}
/** The schema below a key, `unknown` where anything may stand, `undefined` where the key is not known. */
export function findChild(schema: Schema, key: string): Schema | undefined {
  const shape = unwrap(schema)
  if ('entries' in shape) {
    const entry = (shape.entries as Readonly<Record<string, Schema>>)[key]
    if (entry && Object.hasOwn(shape.entries as object, key)) return entry
    if ('rest' in shape) return shape.rest as Schema
    return shape.type === 'loose_object' ? v.unknown() : undefined
  }
  if (shape.type === 'array') return /^\d+$/.test(key) ? (shape as unknown as { item: Schema }).item : undefined
  if (shape.type === 'record') return (shape as unknown as { value: Schema }).value
  return shape.type === 'unknown' ? shape : undefined
}
export function findSchema(schema: Schema, path: readonly string[]): Schema | undefined {
  let found: Schema | undefined = schema
  for (const key of path) found = found && findChild(found, key)
  return found
}
/** Names a table declares; empty for anything else. */
export function knownKeys(schema: Schema): readonly string[] {
  const shape = unwrap(schema)
  return 'entries' in shape ? Object.keys(shape.entries as object) : []
}
export function isTable(schema: Schema): boolean {
  const { type } = unwrap(schema)
  return ['object', 'loose_object', 'strict_object', 'object_with_rest', 'record'].includes(type)
}

/**
 * Marked with `secret()`, or named like one and not marked `secret: false`. Numbers, switches and tables are no
 * secrets.
 */
export function isSecret(schema: Schema | undefined, key: string): boolean {
  if (!schema) return namesSecret(key)
  const { secret } = marksOf(schema)
  if (typeof secret === 'boolean') return secret
  return ['unknown', 'string', 'array'].includes(unwrap(schema).type) && namesSecret(key)
}
interface Rule {
  readonly type: string
  readonly requirement?: unknown
  readonly message?: unknown
  readonly pipe?: readonly Rule[]
}
/** The items of a pipe, those of pipes inside it too. */
function listRules(schema: object): readonly Rule[] {
  const items = 'pipe' in schema ? (schema.pipe as readonly Rule[]) : []
  return items.flatMap((item) => [item].concat(item !== schema && item.pipe ? listRules(item) : []))
}
/** What a schema accepts, in words: "a whole number from 1 to 100". */
export function expectation(schema: Schema): string {
  const shape = unwrap(schema)
  const rules = listRules(shape)
  const rule = (type: string): unknown => rules.find((item) => item.type === type)?.requirement
  const message = rules.find((item) => typeof item.message === 'string')?.message
  switch (shape.type) {
    case 'number': {
      const [min, max] = [rule('min_value'), rule('max_value')]
      const range =
        min === undefined
          ? ''
          : max === undefined
            ? ` of at least ${String(min)}`
            : ` from ${String(min)} to ${String(max)}`
      return `${rules.some((item) => item.type === 'integer') ? 'a whole number' : 'a number'}${range}`
    }
    case 'boolean':
      return 'true or false'
    case 'picklist':
      return `one of ${(shape as unknown as { options: readonly unknown[] }).options.join(', ')}`
    case 'array':
      if ('item' in shape && isTable(shape.item as Schema)) return 'a list of tables'
      return typeof message === 'string' ? message : 'a list of texts'
    case 'string': {
      if (typeof message === 'string') return message
      if (rules.some((item) => item.type === 'url')) return 'a URL'
      return rule('min_length') === undefined ? 'a text' : 'a text that is not empty'
    }
    default:
      return isTable(shape) ? 'a table' : shape.expects
  }
}
/** A value in a few words; `hidden` gives only its type. */
export function describe(value: unknown, hidden: boolean): string {
  if (Array.isArray(value)) return 'a list'
  if (value instanceof Date) return 'a date'
  if (isTree(value)) return 'a table'
  if (value === null) return 'null'
  const kind = { string: 'the text', number: 'the number', bigint: 'the number', boolean: 'the value' }[
    typeof value as string
  ]
  if (kind === undefined) return typeof value
  if (hidden) return `${kind.replace(/^the/, 'a')} (not shown: a secret)`
  if (typeof value !== 'string') return `${kind} ${String(value)}`
  const shown = hideCredentials(value)
  return `${kind} ${JSON.stringify(shown.length > 60 ? `${shown.slice(0, 60)}…` : shown)}`
}

/** An address without the user and password in it. */
export const hideCredentials = (address: string): string =>
  address.replace(/^([a-z][a-z\d+.-]*:\/\/)[^\s/?#@]+@/i, '$1***@')
