import { isDeepStrictEqual } from 'node:util'
import type * as v from 'valibot'
import { Refusal } from '../errors/error.ts'
import type { AnyRoute, Shown } from './route.ts'

type Fields = Readonly<Record<string, unknown>>

/**
 * What the body of a PUT or PATCH changes: its fields without those that are as they were shown. `undefined` when there
 * were fields and none of them is left. Throws `invalid_request` for a field that would be lost: one nobody knows, and
 * one that is shown and not changed here.
 */
export function changesOf(schema: v.GenericSchema, value: unknown, shown: Shown | undefined): unknown {
  const known = entriesOf(schema, value)
  if (!isFields(value) || known === undefined) return refuseUnfit(schema, value, 'unknown')
  const names = Object.keys(known)
  const left: Record<string, unknown> = {}
  for (const [name, given] of Object.entries(value)) {
    const now = shown && Object.entries(shown.fields).find(([field]) => field === name)
    if (now && isDeepStrictEqual(given, now[1])) continue
    if (names.includes(name)) left[name] = given
    else if (now === undefined) throw unknownField(name, names)
    else if (shown?.measured?.includes(name) !== true)
      throw new Refusal(
        'invalid_request',
        `${name}: cannot be changed here; send it as it is shown or leave it out. What can be: ${names.join(', ')}`,
      )
  }
  if (shown && Object.keys(left).length === 0 && Object.keys(value).length > 0) return undefined
  return refuseUnfit(schema, left, 'unknown')
}

/** Whether a route may be sent what it shows, or must not lose a field it is sent. */
export const isChange = ({ method }: Pick<AnyRoute, 'method'>): boolean => method === 'PUT' || method === 'PATCH'

/**
 * Throws `invalid_request` for a list in the place of an object, which schemas take for one without fields; with
 * `unknown` also for a field that nobody knows.
 */
export function refuseUnfit(schema: v.GenericSchema, value: unknown, what: 'lists' | 'unknown', path = ''): unknown {
  const kinds = Array.isArray(value) ? leavesOf(schema) : []
  if (kinds.some((kind) => objects.has(kind)) && kinds.every((kind) => objects.has(kind) || plain.has(kind)))
    throw new Refusal('invalid_request', `${path.slice(0, -1) || 'body'}: Expected an object but received a list`)
  const inner = unwrapped(schema, value)
  if (Array.isArray(value) && inner && 'item' in inner)
    for (const [at, one] of value.entries()) refuseUnfit(inner.item as v.GenericSchema, one, what, `${path}${at}.`)
  const known = entriesOf(schema, value)
  if (known === undefined || !isFields(value)) return value
  for (const [name, given] of Object.entries(value)) {
    const entry = Object.hasOwn(known, name) ? known[name] : undefined
    if (entry) refuseUnfit(entry, given, what, `${path}${name}.`)
    else if (what === 'unknown') throw unknownField(path + name, Object.keys(known))
  }
  return value
}

const unknownField = (name: string, names: readonly string[]): Refusal =>
  new Refusal('invalid_request', `${name.slice(0, 200)}: is no field of this body; there are ${names.join(', ')}`)

/** The fields of a schema that would leave out all others; `undefined` for one that would not. */
function entriesOf(schema: v.GenericSchema, value: unknown): Readonly<Record<string, v.GenericSchema>> | undefined {
  const inner = unwrapped(schema, value)
  return isFields(value) && inner?.type === 'object' && 'entries' in inner
    ? (inner.entries as Readonly<Record<string, v.GenericSchema>>)
    : undefined
}
/** Kinds of schemas that no list fits. */
const plain = new Set(['string', 'number', 'boolean', 'picklist', 'literal', 'null'])
const objects = new Set(['object', 'loose_object', 'strict_object', 'record'])
function leavesOf(schema: v.GenericSchema): readonly string[] {
  if ('wrapped' in schema) return leavesOf(schema.wrapped as v.GenericSchema)
  return schema.type === 'union' && 'options' in schema
    ? (schema.options as v.GenericSchema[]).flatMap(leavesOf)
    : [schema.type]
}
/** The schema that a value is meant for, where that can be told from its kind. */
function unwrapped(schema: v.GenericSchema, value: unknown): v.GenericSchema | undefined {
  if ('wrapped' in schema) return unwrapped(schema.wrapped as v.GenericSchema, value)
  if (schema.type !== 'union' || !('options' in schema)) return schema
  const expected = Array.isArray(value) ? 'array' : isFields(value) ? 'object' : undefined
  const fitting = (schema.options as v.GenericSchema[])
    .map((option) => unwrapped(option, value))
    .filter((option) => option?.type === expected)
  return fitting.length === 1 ? fitting[0] : undefined
}
function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
