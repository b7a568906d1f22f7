import * as v from 'valibot'

/** Any JSON object. Unlike `v.record` alone it refuses a list. */
export const JsonObject = v.pipe(
  v.unknown(),
  v.check((value) => !Array.isArray(value), 'must be an object'),
  v.record(v.string(), v.unknown()),
)
