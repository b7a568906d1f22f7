import Sqlite from 'better-sqlite3'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { UpstreamFailure } from 'svc/sdk'
import { afterAll, describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import { fieldsOf, operations, sampleOf, takes, withValue } from '../support/openapi-bodies.ts'
import type { BodySchema, Field, Operation } from '../support/openapi-bodies.ts'

/** Nothing that is tried here may reach the network. */
const closed = (): Promise<never> =>
  Promise.reject(
    new UpstreamFailure('nowhere', 'there is no network in this test', { reason: 'network', retry: 'never' }),
  )
const host = await startHost({
  fetch: closed,
  config: {
    default_provider: 'builtin',
    http: { max_json_depth: 64 },
    pairing: { enabled: true, push_provider: 'ntfy', ntfy_topic: 'topic' },
  },
})
const agent: string = (await host.json('POST', '/api/agents', { manifest_toml: 'name = "target"' })).body.agent_id
/** Answers messages whatever is done to the other one. */
const talker: string = (
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "talker"\n[model]\nprovider = "builtin"' })
).body.agent_id
await host.json('POST', `/api/agents/${agent}/message`, { message: 'hello' })
const session: string = (await host.json('GET', `/api/agents/${agent}/session`)).body.session_id
const routes = operations((await host.json('GET', '/api/openapi.json')).body)
const database = new Sqlite(join(host.home, 'data', 'svc.db'), { readonly: true })
afterAll(async () => {
  connections.destroy()
  database.close()
  await host[Symbol.asyncDispose]()
})

/** What stands in a path or a body where there is something of that name. */
function known(name: string): string | undefined {
  if (name === 'agent_id') return agent
  if (name === 'session_id') return session
  return undefined
}
const unknownId = '00000000-0000-4000-8000-000000000000'
function pathOf({ path }: Operation, hostile?: { readonly name: string; readonly value: string }): string {
  return path.replaceAll(/\{(\w+)\*?\}/g, (_, name: string) => {
    if (hostile?.name === name) return hostile.value
    if (name === 'id' && path.includes('/agents/')) return path.includes('/message') ? talker : agent
    if (name === 'id' && path.includes('/sessions/')) return session
    return (
      known(name) ??
      (name.endsWith('id') ? unknownId : name === 'name' && path.includes('/providers/') ? 'groq' : 'hostile')
    )
  })
}

/** Every table but those that a refusal may write: the record of who tried what, and the daemon's look at itself. */
const tables = (
  database
    .prepare(
      `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'audit%' AND name NOT LIKE 'core_%' AND name NOT LIKE 'sqlite_%'`,
    )
    .pluck()
    .all() as string[]
).map((table) => ({ table, rows: database.prepare(`SELECT * FROM "${table}"`).raw() }))
const stateNow = (): ReadonlyMap<string, string> =>
  new Map(
    tables.map(({ table, rows }) => [
      table,
      JSON.stringify(rows.all(), (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)),
    ]),
  )
let seenVersion: unknown
let seenState: ReadonlyMap<string, string> = new Map()
const dataVersion = database.prepare('PRAGMA data_version').pluck()
const version = (): unknown => dataVersion.get()
function remember(): void {
  const now = version()
  if (now === seenVersion) return
  seenVersion = now
  seenState = stateNow()
}
/** The tables that are not what they were. */
function changed(): readonly string[] {
  if (version() === seenVersion) return []
  const now = stateNow()
  return [...now].filter(([table, rows]) => seenState.get(table) !== rows).map(([table]) => table)
}

const busy = database
  .prepare(`SELECT COUNT(*) FROM queue_job WHERE state = 'running' OR (state = 'pending' AND due_at <= ?)`)
  .pluck()
/** Work that earlier requests left to the queue is done, or too much of it is left. */
async function drained(): Promise<void> {
  for (const until = Date.now() + MAX_DRAIN_MS; busy.get(Date.now()) !== 0 && Date.now() < until;)
    await new Promise(setImmediate)
}

interface Answered {
  readonly status: number
  readonly text: string
  readonly type: string
}
/** Not `fetch`, which takes half of the time of the whole test. */
const connections = new Agent({ keepAlive: true })
function send(method: string, path: string, body?: string): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const headers =
      body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const sent = request(new URL(path, host.url), { method, headers, agent: connections }, (response) => {
      const { statusCode: status = 0 } = response
      const type = response.headers['content-type'] ?? ''
      // A feed has no end.
      if (method === 'GET' && type.startsWith('text/event-stream')) {
        response.destroy()
        return resolve({ status, text: '', type })
      }
      text(response).then((all) => resolve({ status, text: all, type }), reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}
/** What is wrong with an answer, whatever was asked; `undefined` when nothing is. */
function faultOf({ status, text, type }: Answered): string | undefined {
  // A model that cannot be reached or cannot do what is asked of it, and a feature nobody set up, are not the input's
  // fault: Interface 7 makes that a 500 or a 503.
  if (
    status >= 500 &&
    !/no network in this test|has no key|No provider with a key|Signing in is not configured/.test(text)
  )
    return `${status}: ${text.slice(0, 300)}`
  if (/"code":-32603\b/.test(text)) return `an internal error of JSON-RPC: ${text.slice(0, 300)}`
  if (status < 400) return undefined
  if (!type.startsWith('application/json')) return `${status} is ${type}`
  const { error } = JSON.parse(text) as { error?: unknown }
  const message = typeof error === 'string' ? error : (error as { message?: unknown } | undefined)?.message
  return typeof message === 'string' && message !== ''
    ? undefined
    : `${status} without a message: ${text.slice(0, 200)}`
}

const values: readonly (readonly [name: string, json: string])[] = [
  ['null', 'null'],
  ['true', 'true'],
  ['a number', '7'],
  ['a huge number', '1e400'],
  ['a large integer', '9007199254740993'],
  ['a negative number', '-1'],
  ['a fraction', '0.5'],
  ['an empty text', '""'],
  ['a list', '[]'],
  ['a list of lists', '[[[[1]]]]'],
  ['an object', '{}'],
  ['NUL', '"a\\u0000b"'],
  ['half a surrogate pair', '"\\ud800"'],
  ['a long text', JSON.stringify('x'.repeat(300_000))],
  ['a path', '"../../../etc/passwd"'],
  ['SQL', '"\'; DROP TABLE agents_agent; --"'],
  ['__proto__', '{"__proto__":{"polluted":true}}'],
  ['deep nesting', `${'['.repeat(500)}${']'.repeat(500)}`],
]

/** `npm run hostile-input`: every field with every value, which takes half a minute more. */
const isWhole = process.env['HOSTILE_INPUT'] === 'all'
const MAX_STRIDE = 6
/**
 * Values for a field by its place among so many of a body: as many as every value needs to be tried somewhere in it, and
 * three at least. A body has three places at least: itself, a field and one that it does not know.
 */
function sampleFor(place: number, places: number): typeof values {
  const stride = Math.min(places, MAX_STRIDE)
  return values.filter((_, index) => index % stride === place % stride)
}

/** More than anything in the background changes the same rows: a refusal that writes does so each time. */
const MAX_REPEATS = 50
const MAX_DRAIN_MS = 2_000

/** What is kept here is whatever JSON is sent. */
const anyJson = new Set(['/api/memory/agents/{id}/kv/{key}'])

describe('every field of every body', () => {
  const bodies = routes.flatMap((route) =>
    route.body ? [[`${route.method} ${route.path}`, route, route.body] as const] : [],
  )

  it('is found in the document', () => {
    expect(bodies.length).toBeGreaterThan(30)
  })

  it.each(bodies)(
    '%s',
    async (_, route, schema) => {
      // What the bodies before it were taken for is undone.
      await host.json('PUT', `/api/agents/${agent}/update`, { manifest_toml: 'name = "target"' })
      const base = route.example ?? sampleOf(schema, 'body', known)
      const target = pathOf(route)
      const faults: string[] = []
      const whole: Field = { keys: [], schema }
      const fields = [whole, ...fieldsOf(schema), { keys: ['no_such_field'], schema: {} }]
      for (const [at, field] of fields.entries()) {
        const name = field.keys.join('.') || 'body'
        const parts = [...names(schema), 'no_such_field']
        for (const [what, json] of isWhole ? values : sampleFor(at, fields.length)) {
          const body = JSON.stringify(withValue(base, field.keys, '\u0001here')).replace(
            JSON.stringify('\u0001here'),
            () => json,
          )
          const before = version()
          const answer = await send(route.method, target, body)
          const place = `${name} is ${what}`
          const fault = faultOf(answer)
          if (fault !== undefined) faults.push(`${place}: ${fault}`)
          // Too many requests, or too much money spent, is not said of the input.
          if (answer.status >= 400 && answer.status < 500 && answer.status !== 429) {
            // What goes on in the background, such as the delivery to a webhook that was made before, does not change
            // the same again and again.
            let half = version() === before ? [] : tables.map(({ table }) => table)
            for (let again = 0; half.length > 0 && again < MAX_REPEATS; again++) {
              await drained()
              remember()
              await send(route.method, target, body)
              const twice = changed()
              half = half.filter((table) => twice.includes(table))
            }
            if (half.length > 0) faults.push(`${place}: refused with ${answer.status}, and ${half.join(', ')} changed`)
            if (answer.status === 400 && !parts.some((part) => answer.text.includes(part)))
              faults.push(`${place}: names no field: ${answer.text.slice(0, 200)}`)
          }
          // JSON-RPC refuses with 200 too.
          const isTaken = answer.status < 400 && !/"jsonrpc":"2.0".*"error":\{"code":-/.test(answer.text)
          if (isTaken && !anyJson.has(route.path) && !takes(field.schema, JSON.parse(json)))
            faults.push(`${place}: taken with ${answer.status}`)
        }
      }
      expect(faults.slice(0, 12)).toEqual([])
      expect('polluted' in {}).toBe(false)
    },
    120_000,
  )
})

/** What a refusal may name: a field of the body, the body as a whole, or what JSON itself forbids. */
function names(schema: BodySchema): readonly string[] {
  return [
    'body',
    'JSON',
    'nested',
    ...fieldsOf(schema).flatMap(({ keys }) => keys.filter((key) => typeof key === 'string')),
  ]
}

describe('every parameter', () => {
  const hostile = [
    '%00',
    '%2e%2e',
    '..%2f..%2fetc',
    '%ff',
    'a'.repeat(5000),
    '%27%20OR%201=1',
    '__proto__',
    'constructor',
    '%F0%9F%A6%8A',
    '-1',
    '1e400',
    '%0d%0aX-Injected:%20yes',
  ]
  // The process of this test would end, and nothing could be asked any more.
  const ends = new Set(['/api/shutdown', '/api/restart', '/api/restore'])

  it.each(
    routes.filter(({ path }) => !ends.has(path)).map((route) => [`${route.method} ${route.path}`, route] as const),
  )(
    '%s',
    async (_, route) => {
      const faults: string[] = []
      for (const value of hostile) {
        for (const { name, in: where } of route.parameters) {
          if (where === 'path') {
            const answer = await send(
              route.method,
              pathOf(route, { name, value }),
              route.body ? JSON.stringify(sampleOf(route.body, 'body', known)) : undefined,
            )
            const fault = faultOf(answer)
            if (fault !== undefined) faults.push(`${name} is ${value.slice(0, 30)}: ${fault}`)
          } else if (where === 'query' && route.method === 'GET') {
            const fault = faultOf(await send(route.method, `${pathOf(route)}?${name}=${value}`))
            if (fault !== undefined) faults.push(`${name} is ${value.slice(0, 30)}: ${fault}`)
          }
        }
      }
      expect(faults.slice(0, 12)).toEqual([])
      expect((await host.fetch('/api/health')).status).toBe(200)
    },
    60_000,
  )
})
