import * as v from 'valibot'
import { Refusal } from '../errors/error.ts'
import { parse } from '../schema/parse.ts'
import { refuseUnfit } from './changes.ts'
import type { Exchange } from './exchange.ts'
import { parseJson } from './json-text.ts'
import type { AnyRoute, RawBody } from './route.ts'

const none: Readonly<Record<string, string>> = Object.freeze({})

/** Parameters decoded once: what is still encoded afterwards belongs to the value. */
export function decodeParams(raw: Readonly<Record<string, string>> | undefined): Readonly<Record<string, string>> {
  if (raw === undefined) return none
  const params: Record<string, string> = {}
  for (const name in raw) {
    const value = raw[name]
    if (value !== undefined) params[name] = value.includes('%') ? decode(value) : value
  }
  return params
}

function decode(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch (error) {
    throw new Refusal('invalid_request', 'The path has a malformed percent-encoding', { cause: error })
  }
}

/** The query as an object; a name that comes more than once is a list. */
export function parseQuery(query: string): Record<string, string | string[]> {
  const values: Record<string, string | string[]> = Object.create(null)
  if (query === '') return values
  for (const [name, value] of new URLSearchParams(query)) {
    const known = values[name]
    if (known === undefined) values[name] = value
    else if (Array.isArray(known)) known.push(value)
    else values[name] = [known, value]
  }
  return values
}

export function isRaw(body: AnyRoute['body']): body is RawBody {
  return typeof body === 'object' && body !== null && '~body' in body
}

/** The parsed body of a route that declares one. `seen` is given its bytes. */
export async function readBody(
  exchange: Exchange,
  body: NonNullable<AnyRoute['body']>,
  limits: { readonly maxBodyBytes: number; readonly maxJsonDepth: number },
  seen?: (bytes: Uint8Array) => void,
  /** Looks at the JSON before it is parsed; `undefined` ends it there. */
  prepare?: (value: unknown, body: v.GenericSchema) => Promise<unknown>,
): Promise<unknown> {
  const encoding = exchange.header('content-encoding')
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new Refusal('invalid_request', `Content-Encoding ${encoding} is not accepted; send the body as it is`)
  }
  const type = exchange.header('content-type')
  // Outside of quotes only a list has commas: which of its types the body is of, nobody can say.
  if (type !== undefined && type.includes(',') && type.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').includes(',')) {
    throw new Refusal('invalid_request', 'There is more than one Content-Type; send one')
  }
  const bytes = exchange.hasBody
    ? await (isRaw(body) ? exchange.read(body.maxBytes) : exchange.read(limits.maxBodyBytes, 'http.max_body_bytes'))
    : empty
  seen?.(bytes)
  if (isRaw(body)) return bytes
  if (bytes.length === 0) return emptyBody(body)
  checkJsonType(type)
  const value = parseJson(bytes, limits.maxJsonDepth)
  // JSON has it with an escape only.
  if (Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes('\\u0000'))
    (await import('./nul.ts')).refuseNul(body, value)
  return await parseBody(body, value, prepare)
}

/** What a route gets for the JSON of a body; `undefined` for an empty one. */
export async function parseBody(
  body: v.GenericSchema,
  value: unknown,
  prepare?: (value: unknown, body: v.GenericSchema) => unknown,
): Promise<unknown> {
  if (value === undefined) return emptyBody(body)
  refuseUnfit(body, value, 'lists')
  const prepared = prepare ? await prepare(value, body) : value
  return prepared === undefined ? undefined : parse(body, prepared)
}
const empty = new Uint8Array(0)

/**
 * Clients label also an empty body as JSON. It stands for "nothing", or where the route wants an object, for one
 * without fields.
 */
function emptyBody(body: v.GenericSchema): unknown {
  const nothing = v.safeParse(body, undefined)
  return nothing.success ? nothing.output : parse(body, {})
}

/**
 * Only what a page cannot send across sites without asking first may be taken for JSON: `text/plain` and form types are
 * exactly what it can send. A client that names no type at all is no browser form.
 */
function checkJsonType(type: string | undefined): void {
  if (type === undefined) return
  const essence = type.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (essence === 'application/json' || /^application\/[a-z0-9.!#$&^_-]+\+json$/.test(essence)) return
  throw new Refusal(
    'invalid_request',
    `Content-Type ${essence === '' ? 'is empty' : essence} is not accepted here; send application/json`,
  )
}
