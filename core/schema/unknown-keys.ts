import { findNearest } from './nearest.ts'
import { isObject } from './object.ts'

/** A key that a schema does not have, by its path; parts of lists are not numbered. */
export interface UnknownKey {
  readonly path: string
  /** The path of the key beside it that is most likely meant. */
  readonly nearest: string | undefined
}

/** The keys of a value that a valibot schema of objects, records and lists does not have, each once. */
export function unknownKeys(schema: unknown, value: unknown, path = ''): readonly UnknownKey[] {
  if (!isObject(schema)) return []
  const { entries, wrapped, item, type, value: each } = schema
  if (isObject(entries))
    return Object.entries(isObject(value) ? value : {}).flatMap(([key, inner]) =>
      Object.hasOwn(entries, key)
        ? unknownKeys(entries[key], inner, `${path}${key}.`)
        : [toUnknownKey(key, Object.keys(entries), path)],
    )
  if (wrapped !== undefined) return unknownKeys(wrapped, value, path)
  if (type === 'record')
    return Object.entries(isObject(value) ? value : {}).flatMap(([key, one]) =>
      unknownKeys(each, one, `${path}${key}.`),
    )
  if (item === undefined || !Array.isArray(value)) return []
  const found = value.flatMap((one) => unknownKeys(item, one, path))
  return [...new Map(found.map((key) => [key.path, key])).values()]
}

/** `path` is that of its table, with a dot at its end, or empty. */
export function toUnknownKey(key: string, known: Iterable<string>, path: string): UnknownKey {
  const nearest = findNearest(key, known)
  return { path: `${path}${key}`, nearest: nearest === undefined ? undefined : `${path}${nearest}` }
}
