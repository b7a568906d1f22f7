import * as v from 'valibot'
import { Refusal } from '../errors/error.ts'
import { refuseNearMisses } from './near-miss.ts'

/** The parsed value. Throws `invalid_request` that names each wrong field and what was expected (Interface 7). */
export function parse<S extends v.GenericSchema>(schema: S, value: unknown, what = 'body'): v.InferOutput<S> {
  const result = v.safeParse(schema, value, { abortPipeEarly: true })
  if (result.success) {
    // A path has no further names, and caches and trackers add theirs to a query.
    if (what !== 'path' && what !== 'query') refuseNearMisses(schema, value)
    return result.output
  }
  const issues = result.issues
    .slice(0, 10)
    .map((issue) => ({ path: v.getDotPath(issue) ?? what, message: problemOf(issue) }))
  const first = issues[0]
  throw new Refusal('invalid_request', first ? `${first.path}: ${first.message}` : `invalid ${what}`, {
    details: { issues },
  })
}
/** What the library says of a field that is not there names the field twice. */
const problemOf = ({ message }: v.BaseIssue<unknown>): string =>
  message.startsWith('Invalid key: ') && message.endsWith('received undefined') ? 'is missing' : message
