import { isUtf8 } from 'node:buffer'
import { readOwnJson } from 'svc/internal'
import { Refusal } from 'svc/sdk'

/**
 * The JSON text of a value, out of a request body: that of its member `value`. It stays text, so that a number of any
 * size and a key of any name come back as they were sent. Throws `invalid_request` for a body without one, or with more
 * than it and the key: what is spelled wrong must not be lost.
 */
export function readValue(body: Uint8Array, key: string, maxDepth: number): string {
  const text = readJson(body, 'value')
  const members = scan(text, maxDepth)
  const value = members.get('value')
  if (value === undefined)
    throw new Refusal('invalid_request', 'value: is missing; the body is an object with the value under this name')
  for (const [name, member] of members)
    if (name !== 'value' && !(name === 'key' && readOwnJson(member) === key))
      throw new Refusal(
        'invalid_request',
        name === 'key'
          ? `key: the body names another key than the path, "${key}"`
          : `${name.slice(0, 100)}: is no field of this body; there are value, key`,
      )
  return value
}

/**
 * The members of a JSON object as JSON text, the last one of each name. Throws `invalid_request` for a body that is not
 * an object.
 */
export function readMembers(body: Uint8Array, maxDepth: number): ReadonlyMap<string, string> {
  const text = readJson(body, 'body')
  if (!text.startsWith('{')) throw new Refusal('invalid_request', 'body: Expected an object')
  return scan(text, maxDepth)
}

/** The same of JSON text that was read already; `undefined` when it is no object. */
export function membersOf(text: string, maxDepth: number): ReadonlyMap<string, string> | undefined {
  return text.startsWith('{') ? scan(text, maxDepth) : undefined
}

function readJson(body: Uint8Array, what: string): string {
  if (!isUtf8(body)) throw new Refusal('invalid_request', 'The body is not valid UTF-8')
  const text = new TextDecoder().decode(body)
  if (text.trim() === '') throw new Refusal('invalid_request', `${what}: a JSON body is needed`)
  try {
    readOwnJson(text)
  } catch (error) {
    throw new Refusal(
      'invalid_request',
      `The body is not valid JSON: ${error instanceof Error ? error.message : 'unreadable'}`,
      { cause: error },
    )
  }
  return text.trim()
}

/** Walks over valid JSON once: refuses deep nesting and cuts out the members of the outermost object. */
function scan(text: string, maxDepth: number): ReadonlyMap<string, string> {
  const inObject = text.startsWith('{')
  const found = new Map<string, string>()
  let depth = 0
  let name: string | undefined
  let from = 0
  const endMember = (at: number): void => {
    if (name !== undefined) found.set(name, text.slice(from, at).trim())
    name = undefined
  }
  for (let at = 0; at < text.length; at++) {
    const sign = text[at]
    if (sign === '"') {
      const end = endOfString(text, at)
      if (inObject && depth === 1 && name === undefined) {
        const decoded: unknown = readOwnJson(text.slice(at, end + 1))
        name = String(decoded)
        from = text.indexOf(':', end) + 1
      }
      at = end
    } else if (sign === '{' || sign === '[') {
      if (++depth > maxDepth)
        throw new Refusal(
          'invalid_request',
          `The body is nested deeper than ${maxDepth} levels (plugins.kv.max_value_depth)`,
        )
    } else if (sign === '}' || sign === ']') {
      if (inObject && depth === 1) endMember(at)
      depth--
    } else if (sign === ',' && inObject && depth === 1) endMember(at)
  }
  return found
}

function endOfString(text: string, start: number): number {
  let at = start + 1
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at
}
