import { Refusal } from 'svc/sdk'
import { membersOf, readMembers } from './json-text.ts'

/** The body and its member `kv` wrap each value. */
const WRAPPER_DEPTH = 2

/** The values of an import by their keys, as JSON text. Throws `invalid_request`. */
export function readImport(
  body: Uint8Array,
  maxValueDepth: number,
): { readonly texts: ReadonlyMap<string, string>; readonly clear: boolean } {
  const maxDepth = maxValueDepth + WRAPPER_DEPTH
  const members = readMembers(body, maxDepth)
  const kv = members.get('kv')
  const texts = kv === undefined ? undefined : membersOf(kv, maxDepth)
  if (!texts) throw new Refusal('invalid_request', 'kv: Expected an object of keys and values')
  const version = members.get('version') ?? '1'
  if (version !== '1') throw new Refusal('invalid_request', 'version: Expected 1')
  const clear = members.get('clear_existing') ?? 'false'
  if (clear !== 'true' && clear !== 'false')
    throw new Refusal('invalid_request', 'clear_existing: Expected true or false')
  return { texts, clear: clear === 'true' }
}
