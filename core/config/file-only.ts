import * as v from 'valibot'
import { findChild, isTable, isTree, marksOf } from './shape.ts'
import type { Schema } from './shape.ts'

/**
 * Marks a key, or every key of a section, as one that is set in the configuration file and by no route. Inside it `settable` makes
 * exceptions. `reason`: what an agent, a paired device or a page could win by setting it.
 */
export function fileOnly<S extends v.GenericSchema<any, any>>(reason: string, schema: S) {
  return v.pipe(schema, v.metadata({ file_only: true, reason }))
}
/** Marks a key, or every key of a section, as one that may be set over the API. `reason`: why nobody wins anything by it. */
export function settable<S extends v.GenericSchema<any, any>>(reason: string, schema: S) {
  return v.pipe(schema, v.metadata({ file_only: false, reason }))
}

/** Whether only the file sets a key, and why. */
export interface KeyRule {
  readonly fileOnly: boolean
  readonly reason: string
}
/** Of a key that says nothing, and no section around it: nobody has thought about it, so it is safe. */
export const undecided: KeyRule = {
  fileOnly: true,
  reason: 'its plugin does not say that it may be set in another way',
}

/** What the schema itself says; `undefined` when that is for the sections around it. */
export function ownRule(schema: Schema): KeyRule | undefined {
  const { file_only: only, reason } = marksOf(schema)
  return typeof only === 'boolean' ? { fileOnly: only, reason: typeof reason === 'string' ? reason : '' } : undefined
}

/** The first key that this value would set and only the file sets. Tables and lists of tables are looked into, whose keys differ. */
export function findFileOnly(
  schema: Schema,
  path: readonly string[],
  value: unknown,
): { readonly path: readonly string[]; readonly reason: string } | undefined {
  let part: Schema | undefined = schema
  let rule = ownRule(schema) ?? undecided
  for (const key of path) {
    part = part && findChild(part, key)
    rule = (part && ownRule(part)) ?? rule
  }
  return inValue(part, path, value, rule)
}
function inValue(
  schema: Schema | undefined,
  path: readonly string[],
  value: unknown,
  rule: KeyRule,
): { readonly path: readonly string[]; readonly reason: string } | undefined {
  const inside =
    schema && isTable(schema) && isTree(value)
      ? Object.entries(value)
      : Array.isArray(value) && value.some(isTree)
        ? [...value.entries()]
        : []
  if (inside.length === 0) return rule.fileOnly ? { path, reason: rule.reason } : undefined
  for (const [key, item] of inside) {
    const child = schema && findChild(schema, String(key))
    const found = inValue(child, [...path, String(key)], item, (child && ownRule(child)) ?? rule)
    if (found) return found
  }
  return undefined
}
