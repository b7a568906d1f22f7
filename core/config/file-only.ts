import * as v from 'valibot'
import { marksOf } from './shape.ts'
import type { Schema } from './shape.ts'

/**
 * Marks a key, or every key of a section, as one that is set in the configuration file and by no route. Inside it
 * `settable` makes exceptions. `reason`: what an attacker could win by setting it.
 */
export function fileOnly<S extends v.GenericSchema>(reason: string, schema: S) {
  return v.pipe(schema, v.metadata({ file_only: true, reason }))
}
/**
 * Marks a key, or every key of a section, as one that may be set over the API. `reason`: why nobody wins anything by
 * it.
 */
export function settable<S extends v.GenericSchema>(reason: string, schema: S) {
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
