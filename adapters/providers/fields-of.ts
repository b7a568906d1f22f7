import type { GenericSchema } from 'valibot'

/**
 * Schemas for fields of `T`, a type that the vendor publishes. In `v.object({ … } satisfies FieldsOf<T>)` a field that
 * `T` does not have is a type error.
 */
export type FieldsOf<T> = { readonly [Key in keyof T]?: GenericSchema<unknown> }
