import type { GenericSchema } from 'valibot'

/**
 * Schemas for some fields of `T`, a vendor's published type. `v.object({ … } satisfies FieldsOf<T>)` makes a field that
 * the vendor does not have a type error.
 */
export type FieldsOf<T> = { readonly [Key in keyof T]?: GenericSchema<unknown> }
