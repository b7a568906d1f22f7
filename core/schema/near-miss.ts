import type * as v from 'valibot'
import { Refusal } from '../errors/error.ts'
import { findNearest } from './nearest.ts'

type Schema = v.GenericSchema<any, any>
/** Bounds of what is looked at: a body may be large, and hardly any has a name that is not known. */
const MOST_NAMES = 64
const MOST_ITEMS = 100
const LONGEST = 64
const DEPTH = 5

/**
 * Throws `invalid_request` for a field that nobody knows and that looks like one that is known and missing: what was meant would be
 * ignored, and something or somebody else taken. Other unknown fields are let be, and so is everything in a loose object.
 */
export function refuseNearMisses(schema: Schema, value: unknown, path = '', depth = DEPTH): void {
  if (depth === 0 || typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    const items = forms(schema).flatMap((form) => ('item' in form ? [form.item as Schema] : []))
    const [item] = items
    if (item && items.length === 1)
      for (const [index, one] of value.slice(0, MOST_ITEMS).entries())
        refuseNearMisses(item, one, `${path}${index}.`, depth - 1)
    return
  }
  const known = entriesOf(schema)
  if (!known) return
  let unknown = 0
  for (const name of Object.keys(value)) {
    const inner = known.get(name)
    if (inner) refuseNearMisses(inner, (value as Record<string, unknown>)[name], `${path}${name}.`, depth - 1)
    else if (name.length <= LONGEST && ++unknown <= MOST_NAMES) {
      const meant = nearMiss(
        name,
        [...known.keys()].filter((one) => !Object.hasOwn(value, one)),
      )
      if (meant === undefined) continue
      const message = `unknown field; did you mean ${path}${meant}?`
      throw new Refusal('invalid_request', `${path}${name}: ${message}`, {
        details: { issues: [{ path: `${path}${name}`, message }] },
      })
    }
  }
}

/** The missing name that an unknown one most likely stands for: written another way, a slip away, or with what it is a name or an id of. */
function nearMiss(name: string, missing: readonly string[]): string | undefined {
  const plain = snake(name)
  const stem = stemOf(plain)
  return (
    missing.find((one) => snake(one) === plain) ??
    missing.find((one) => stemOf(snake(one)) === stem) ??
    findNearest(plain, missing)
  )
}
const snake = (name: string): string =>
  name
    .replaceAll(/([a-z\d])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase()
const stemOf = (name: string): string => name.replace(/_(?:ids?|uuid|name)$/, '')

/** The fields of an object, in all forms it may have; `undefined` where any may be there. */
function entriesOf(schema: Schema): ReadonlyMap<string, Schema> | undefined {
  const objects = forms(schema).filter(({ type }) => /object|record|unknown|any|custom/.test(type))
  if (objects.length === 0 || objects.some(({ type }) => type !== 'object' && type !== 'strict_object'))
    return undefined
  return new Map(
    objects.flatMap((form) =>
      'entries' in form ? Object.entries(form.entries as Readonly<Record<string, Schema>>) : [],
    ),
  )
}
/** What a value may be, without what only says that it may be missing. */
function forms(schema: Schema): readonly Schema[] {
  if ('wrapped' in schema) return forms(schema.wrapped as Schema)
  if ('options' in schema && Array.isArray(schema.options) && (schema.type === 'union' || schema.type === 'variant'))
    return (schema.options as readonly Schema[]).flatMap(forms)
  if ('pipe' in schema && Array.isArray(schema.pipe) && schema.pipe[0] !== schema) {
    const [first] = schema.pipe as readonly Schema[]
    return first && first !== schema && ('wrapped' in first || 'options' in first || 'pipe' in first)
      ? forms(first)
      : [schema]
  }
  return [schema]
}
