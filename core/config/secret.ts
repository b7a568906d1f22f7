import * as v from 'valibot'

/** Marks a schema as secret: kept out of logs, of printed configuration and of answers; shown as marked in JSON Schema. */
export function secret<S extends v.GenericSchema<any, any>>(schema: S) {
  return v.pipe(schema, v.metadata({ secret: true }))
}
