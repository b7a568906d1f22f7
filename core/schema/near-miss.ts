import type * as v from 'valibot'
import { Refusal } from '../errors/error.ts'
import { findNearest } from './nearest.ts'
import { isObject } from './object.ts'

type Schema = v.GenericSchema
/** A body may be large, and hardly any has an unknown name, so that only so much of it is compared. */
const MAX_UNKNOWN_NAMES = 64
const MAX_ITEMS = 100
const MAX_NAME_CHARS = 64
const MAX_DEPTH = 5

/**
 * Throws `invalid_request` for an unknown field that looks like a known one that is missing: what the caller meant
 * would be ignored otherwise. Other unknown fields pass, and so does everything in a loose object. A list in place of an
 * object is refused too.
 */
export function refuseNearMisses(schema: Schema, value: unknown, path = '', depth = MAX_DEPTH): void {
  if (depth === 0) return
  if (Array.isArray(value)) checkItems(schema, value, path, depth)
  else if (isObject(value)) checkFields(schema, value, path, depth)
}

function checkItems(schema: Schema, items: readonly unknown[], path: string, depth: number): void {
  const variants = variantsOf(schema)
  const isTuple = variants.some((variant) => 'items' in variant)
  const [item, ...others] = variants.flatMap((variant) => ('item' in variant ? [variant.item as Schema] : []))
  // The schema of an object without required fields accepts a list too.
  if (!item && !isTuple && entriesOf(schema)) throw notAnObject(path.replace(/\.$/, '') || 'body')
  if (!item || others.length > 0) return
  for (const [index, value] of items.slice(0, MAX_ITEMS).entries())
    refuseNearMisses(item, value, `${path}${index}.`, depth - 1)
}

function checkFields(schema: Schema, fields: Readonly<Record<string, unknown>>, path: string, depth: number): void {
  const known = entriesOf(schema)
  if (!known) return
  for (const [name, inner] of known)
    if (Object.hasOwn(fields, name)) refuseNearMisses(inner, fields[name], `${path}${name}.`, depth - 1)
  const unknown = Object.keys(fields).filter((name) => !known.has(name) && name.length <= MAX_NAME_CHARS)
  const missing = [...known.keys()].filter((name) => !Object.hasOwn(fields, name))
  for (const name of unknown.slice(0, MAX_UNKNOWN_NAMES)) {
    const meant = findMeant(name, missing)
    if (meant !== undefined) throw unknownField(`${path}${name}`, `${path}${meant}`)
  }
}

function notAnObject(path: string): Refusal {
  const message = 'expected an object, got a list'
  return new Refusal('invalid_request', `${path}: ${message}`, { details: { issues: [{ path, message }] } })
}

function unknownField(path: string, meant: string): Refusal {
  const message = `unknown field; did you mean ${meant}?`
  return new Refusal('invalid_request', `${path}: ${message}`, { details: { issues: [{ path, message }] } })
}

/**
 * The missing name that an unknown one most likely stands for: in another case, with another ending (`user` for
 * `user_id`, `timeout_ms` for `timeout_secs`), or misspelt.
 */
function findMeant(name: string, missing: readonly string[]): string | undefined {
  const plain = toSnakeCase(name)
  const stem = stemOf(plain)
  return (
    missing.find((candidate) => toSnakeCase(candidate) === plain) ??
    missing.find((candidate) => stemOf(toSnakeCase(candidate)) === stem) ??
    findNearest(plain, missing)
  )
}
const toSnakeCase = (name: string): string =>
  name
    .replaceAll(/([a-z\d])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase()
/** The name without what it identifies by, and without its unit. */
const stemOf = (name: string): string =>
  name.replace(
    /_(?:ids?|uuid|name|millis|ms|s|sec(?:ond)?s?|min(?:ute)?s?|hours?|days?|bytes|kb|mb|usd|dollars|cents)$/,
    '',
  )

/** The fields of an object, in all variants it may have; `undefined` where any may be there. */
function entriesOf(schema: Schema): ReadonlyMap<string, Schema> | undefined {
  const objects = variantsOf(schema).filter(({ type }) => /object|record|unknown|any|custom/.test(type))
  if (objects.length === 0 || objects.some(({ type }) => type !== 'object' && type !== 'strict_object'))
    return undefined
  return new Map(
    objects.flatMap((variant) =>
      'entries' in variant ? Object.entries(variant.entries as Readonly<Record<string, Schema>>) : [],
    ),
  )
}

/** The schemas a value may have, without the wrappers that only say that it may be missing. */
function variantsOf(schema: Schema): readonly Schema[] {
  if ('wrapped' in schema) return variantsOf(schema.wrapped as Schema)
  if ('options' in schema && Array.isArray(schema.options) && (schema.type === 'union' || schema.type === 'variant'))
    return (schema.options as readonly Schema[]).flatMap(variantsOf)
  if ('pipe' in schema && Array.isArray(schema.pipe) && schema.pipe[0] !== schema) {
    const [first] = schema.pipe as readonly Schema[]
    return first && first !== schema && ('wrapped' in first || 'options' in first || 'pipe' in first)
      ? variantsOf(first)
      : [schema]
  }
  return [schema]
}
