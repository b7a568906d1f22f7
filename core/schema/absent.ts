import * as v from 'valibot'

/** A field of a request that may be left out. Clients in other languages send `null` for what they leave out. */
export const orAbsent = <S extends v.GenericSchema>(schema: S) =>
  v.optional(
    v.pipe(
      v.nullable(schema),
      v.transform((value): NonNullable<v.InferOutput<S>> | undefined => value ?? undefined),
    ),
  )
