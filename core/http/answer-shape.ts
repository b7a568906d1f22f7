import { createHash } from 'node:crypto'
import { isObject } from '../schema/object.ts'

/** The names of the fields of an answer, by their place. Fields of the first entry stand for those of a list. */
export function shapeOf(value: unknown, at = '', found = new Set<string>()): ReadonlySet<string> {
  if (Array.isArray(value)) shapeOf(value[0], `${at}[]`, found)
  else if (isObject(value))
    for (const [name, field] of Object.entries(value)) {
      const place = at === '' ? name : `${at}.${name}`
      found.add(place)
      shapeOf(field, place, found)
    }
  return found
}

/** Compares shapes without saying what the names are, which may be those of somebody's keys. */
export function shapeDigest(shape: ReadonlySet<string>): string {
  return createHash('sha256')
    .update([...shape].toSorted().join('\n'))
    .digest('hex')
}
