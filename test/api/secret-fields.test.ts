import { afterAll, describe, expect, it } from 'vitest'
import type * as v from 'valibot'
import { marksOf } from '../../core/config/shape.ts'
import { isRaw } from '../../core/http/input.ts'
import { namesSecret } from '../../core/log/secret-name.ts'
import { startHost } from '../support/host.ts'

const host = await startHost({ memory: true, listen: false, config: { pairing: { enabled: true } } })
afterAll(() => host[Symbol.asyncDispose]())

interface Field {
  readonly name: string
  readonly path: string
  readonly marked: boolean
}
type Part = v.GenericSchema & {
  readonly wrapped?: Part
  readonly options?: readonly Part[]
  readonly item?: Part
  readonly entries?: Readonly<Record<string, Part>>
}
/** Whether a schema, or what it wraps or lists, is marked. */
function isMarked(schema: Part): boolean {
  return (
    marksOf(schema)['secret'] === true ||
    [schema.wrapped, schema.item, ...(Array.isArray(schema.options) ? schema.options : [])].some(
      (part) => typeof part === 'object' && isMarked(part),
    )
  )
}
/** Every field of a body, also those of objects and lists inside it. */
function fieldsOf(schema: Part, path = '', depth = 8): readonly Field[] {
  if (depth === 0 || typeof schema !== 'object') return []
  const inner = [schema.wrapped, schema.item, ...(Array.isArray(schema.options) ? schema.options : [])]
  return [
    ...inner.flatMap((part) => (part ? fieldsOf(part, path, depth - 1) : [])),
    ...Object.entries(schema.entries ?? {}).flatMap(([name, part]) => [
      { name, path: `${path}${name}`, marked: isMarked(part) },
      ...fieldsOf(part, `${path}${name}.`, depth - 1),
    ]),
  ]
}

/** Named like a secret and none: what they are. */
const none: Readonly<Record<string, string>> = {
  'POST /api/channels/:name/configure token': 'the schema of the adapter marks it, and a mask keeps the stored one',
  'POST /api/pairing/complete token': 'a code that counts once, of which no answer shows a mask',
  'POST /api/migrate import_keys': 'whether keys come over, and none of them',
  'POST /api/auth/introspect token': 'the token that is asked about; a mask is one that is not active',
}

describe('a field of a body that is named like a secret', () => {
  it('carries the mark of one, so that its mask is never stored and no log shows it', () => {
    const found = host.app.routes().flatMap(({ method, path, body }) =>
      body === undefined || isRaw(body)
        ? []
        : fieldsOf(body as Part)
            .filter(({ name }) => namesSecret(name))
            .map((field) => ({ ...field, at: `${method} ${path} ${field.path}` })),
    )
    expect(found.length).toBeGreaterThan(5)
    expect(found.filter(({ at, marked }) => !marked && !(at in none)).map(({ at }) => at)).toEqual([])
    const known = new Set(found.map(({ at }) => at))
    expect(Object.keys(none).filter((at) => !known.has(at))).toEqual([])
  })
})
