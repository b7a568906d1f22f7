import * as v from 'valibot'

/** What is shown in place of a secret. */
export const MASK = '***'
/** Said to somebody who sends it back. */
export const MASKED_SECRET_MESSAGE =
  MASK + ' is shown in place of a secret and is none: send the secret itself, or leave the field out'

/**
 * Marks a schema as secret: kept out of logs, of printed configuration and of answers; shown as marked in JSON Schema.
 * The mask is never stored: a client that sends back what it was shown is told so, and where a route says what it
 * shows, nothing changes.
 */
export function secret<S extends v.GenericSchema>(schema: S) {
  return v.pipe(
    schema,
    v.check(
      (value: v.InferOutput<S>) => value !== MASK,
      () => MASKED_SECRET_MESSAGE,
    ),
    v.metadata({ secret: true }),
  )
}
