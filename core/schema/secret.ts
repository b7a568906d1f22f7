import * as v from 'valibot'

/** What is shown in place of a secret. */
export const MASK = '***'
const NOT_ONE = `${MASK} is shown in place of a secret and is none: send the secret itself, or leave the field out`

/**
 * Marks a schema as secret: kept out of logs, of printed configuration and of answers; shown as marked in JSON Schema. The mask is never
 * stored: a client that sends back what it was shown is told so, or means that nothing changes (`orUnchanged`).
 */
export function secret<S extends v.GenericSchema<any, any>>(schema: S) {
  return v.pipe(
    schema,
    v.check(
      (value: v.InferOutput<S>) => value !== MASK,
      () => NOT_ONE,
    ),
    v.metadata({ secret: true }),
  )
}

/** A secret in a body that changes something: left out, or as it was shown, it stays. */
export function orUnchanged<S extends v.GenericSchema<any, any>>(schema: S) {
  return v.optional(
    v.union([
      v.pipe(
        v.literal(MASK),
        v.transform((): undefined => undefined),
      ),
      schema,
    ]),
  )
}
