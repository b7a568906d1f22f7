import { expect, test } from 'vitest'
import * as v from 'valibot'
import { defineRoute, reply } from '../../../core/http/route.ts'
import type { Reply } from '../../../core/http/route.ts'
import { Scope } from '../../../core/scope/scope.ts'
import { guarded, open, ping, raw } from './harness.ts'

const item = (method: 'GET' | 'PUT', path: `/${string}`, mark = path) =>
  defineRoute({
    method,
    path,
    summary: 'Item',
    auth: 'public',
    effect: 'conversation',
    cost: 1,
    returns: v.unknown(),
    handle: ({ params }) => ({ mark, params }),
  })

test('a route answers JSON with its status', async () => {
  const created = defineRoute({
    method: 'POST',
    path: '/api/things',
    summary: 'Create',
    auth: 'public',
    effect: 'conversation',
    cost: 1,
    status: 201,
    returns: v.object({ id: v.string() }),
    handle: () => ({ id: 'x' }),
  })
  const { url } = await open([created])
  const answer = await fetch(`${url}/api/things`, { method: 'POST' })
  expect(answer.status).toBe(201)
  expect(answer.headers.get('content-type')).toBe('application/json')
  expect(await answer.json()).toEqual({ id: 'x' })
})

test('the same method and path cannot be registered twice', async () => {
  const { http } = await open([ping])
  expect(() => http.forPlugin(new Scope('second')).add(ping)).toThrow(
    'GET /api/ping of plugin "second" is taken by "plugin"',
  )
})

test('paths that differ in parameter names only are the same', async () => {
  const { http, scope } = await open([item('GET', '/api/a/:id')])
  expect(() => http.forPlugin(scope).add(item('GET', '/api/a/:name'))).toThrow('is taken')
  expect(() => http.forPlugin(scope).add(item('PUT', '/api/a/:name'))).not.toThrow()
})

test('routes may be added and removed while listening', async () => {
  const { http, url } = await open([ping])
  const late = new Scope('late')
  expect((await fetch(`${url}/api/late`)).status).toBe(404)
  http.forPlugin(late).add(item('GET', '/api/late'))
  expect((await fetch(`${url}/api/late`)).status).toBe(200)
  await late.close(100)
  expect(late.ledger()).toEqual([])
  expect((await fetch(`${url}/api/late`)).status).toBe(404)
})

test('a literal path wins over a parameter, and a parameter over the rest of the path', async () => {
  const { url } = await open([item('GET', '/api/m/**:id'), item('GET', '/api/m/:id'), item('GET', '/api/m/list')])
  const read = async (path: string) => (await fetch(`${url}${path}`)).json()
  expect(await read('/api/m/list')).toEqual({ mark: '/api/m/list', params: {} })
  expect(await read('/api/m/one')).toEqual({ mark: '/api/m/:id', params: { id: 'one' } })
  expect(await read('/api/m/a/b/c')).toEqual({ mark: '/api/m/**:id', params: { id: 'a/b/c' } })
})

test('parameters are decoded exactly once', async () => {
  const { url } = await open([item('GET', '/api/k/:key'), item('GET', '/api/m/**:id')])
  const read = async (path: string) =>
    (await (await fetch(`${url}${path}`)).json()) as { params: Record<string, string> }
  expect((await read('/api/k/a%2Fb')).params).toEqual({ key: 'a/b' })
  expect((await read('/api/k/%2541')).params).toEqual({ key: '%41' })
  expect((await read('/api/k/%E2%82%AC')).params).toEqual({ key: '€' })
  expect((await read('/api/m/x%2Fy/z')).params).toEqual({ id: 'x/y/z' })
})

test('a malformed percent-encoding is 400', async () => {
  const { url } = await open([item('GET', '/api/k/:key')])
  for (const path of ['/api/k/%zz', '/api/k/%', '/api/k/%ff']) expect((await fetch(`${url}${path}`)).status).toBe(400)
})

test('an unknown path is 404, a known one with another method 405 that names the allowed ones', async () => {
  const { url } = await open([ping, item('GET', '/api/a/:id'), item('PUT', '/api/a/:id')])
  const unknown = await fetch(`${url}/api/none`)
  expect(unknown.status).toBe(404)
  expect(await unknown.json()).toMatchObject({
    error: { code: 'not_found', request_id: unknown.headers.get('x-request-id') },
  })
  const wrong = await fetch(`${url}/api/a/1`, { method: 'DELETE' })
  expect(wrong.status).toBe(405)
  expect(wrong.headers.get('allow')).toBe('GET, PUT, HEAD, OPTIONS')
  expect(await wrong.json()).toMatchObject({ error: { code: 'method_not_allowed' } })
})

test('HEAD answers what GET would, without the body', async () => {
  const { url } = await open([ping])
  const head = await fetch(`${url}/api/ping`, { method: 'HEAD' })
  expect(head.status).toBe(200)
  expect(head.headers.get('content-length')).toBe(String(JSON.stringify({ pong: true }).length))
  expect(await head.text()).toBe('')
})

test('OPTIONS tells the methods of a path, and 404 for none', async () => {
  const { url } = await open([ping])
  const known = await fetch(`${url}/api/ping`, { method: 'OPTIONS' })
  expect([known.status, known.headers.get('allow')]).toEqual([204, 'GET, HEAD, OPTIONS'])
  expect((await fetch(`${url}/api/none`, { method: 'OPTIONS' })).status).toBe(404)
})

test('a path with a double slash or a method override does not reach another route', async () => {
  const { url } = await open([ping, guarded], { settings: { apiKey: 'k' } })
  expect((await fetch(`${url}//api/ping`)).status).toBe(404)
  expect((await fetch(`${url}/api//ping`)).status).toBe(404)
  expect((await fetch(`${url}/api/secret/`)).status).toBe(401)
  expect((await fetch(`${url}/api/%73ecret`)).status).toBe(401)
  expect((await fetch(`${url}/api/ping/../secret`)).status).toBe(401)
  expect(
    (await fetch(`${url}/api/ping`, { method: 'POST', headers: { 'x-http-method-override': 'GET' } })).status,
  ).toBe(405)
})

test('the query is parsed, and a repeated name is a list', async () => {
  const list = defineRoute({
    method: 'GET',
    path: '/api/list',
    summary: 'List',
    auth: 'public',
    effect: 'read',
    cost: 1,
    query: v.object({
      limit: v.optional(v.pipe(v.string(), v.regex(/^\d+$/, 'not a number'), v.transform(Number)), '50'),
      tag: v.optional(v.union([v.string(), v.array(v.string())])),
    }),
    returns: v.unknown(),
    handle: ({ query }) => query,
  })
  const { url } = await open([list])
  expect(await (await fetch(`${url}/api/list?limit=5&tag=a&tag=b+c`)).json()).toEqual({ limit: 5, tag: ['a', 'b c'] })
  expect(await (await fetch(`${url}/api/list`)).json()).toEqual({ limit: 50 })
  const wrong = await fetch(`${url}/api/list?limit=x`)
  expect(wrong.status).toBe(400)
  expect(await wrong.json()).toMatchObject({ error: { code: 'invalid_request', message: 'limit: not a number' } })
})

test('a reply carries its own body, headers and status', async () => {
  const page = defineRoute({
    method: 'GET',
    path: '/',
    summary: 'Page',
    auth: 'public',
    effect: 'read',
    cost: 1,
    returns: v.unknown(),
    answers: { 203: { description: 'A page', type: 'text/html' } },
    handle: () =>
      reply(
        '<p>hi',
        {
          'content-type': 'text/html',
          'Cache-Control': 'public, max-age=60',
          'content-security-policy': 'sandbox',
          'x-frame-options': 'SAMEORIGIN',
          server: 'x',
        },
        203,
      ),
  })
  const { url } = await open([page])
  const answer = await fetch(`${url}/`)
  expect([answer.status, await answer.text()]).toEqual([203, '<p>hi'])
  expect(answer.headers.get('cache-control')).toBe('public, max-age=60')
  expect(answer.headers.get('content-security-policy')).toMatch(/^default-src 'self';.*; sandbox$/)
  expect(answer.headers.get('x-frame-options')).toBe('DENY')
  expect(answer.headers.has('server')).toBe(false)
})

test('an answer without a value is 204 and is not labelled as JSON', async () => {
  const none = defineRoute({
    method: 'DELETE',
    path: '/api/x',
    summary: 'Remove',
    auth: 'public',
    effect: 'conversation',
    cost: 1,
    status: 204,
    returns: v.undefined(),
    handle: () => undefined,
  })
  const { url } = await open([none])
  const answer = await fetch(`${url}/api/x`, { method: 'DELETE' })
  expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([204, null, ''])
})

test('in development an answer that breaks its own schema is a defect', async () => {
  const wrong = defineRoute({
    method: 'GET',
    path: '/api/x',
    summary: 'X',
    auth: 'public',
    effect: 'read',
    cost: 1,
    returns: v.object({ n: v.number() }),
    handle: () => JSON.parse('{"n":"1"}'),
  })
  const opened = await open([wrong])
  expect((await fetch(`${opened.url}/api/x`)).status).toBe(500)
  expect(opened.defects[0]?.where).toBe('GET /api/x')
  opened.settings.development = false
  expect((await fetch(`${opened.url}/api/x`)).status).toBe(200)
})

test('fetch answers without a port, with the same headers and errors', async () => {
  const { http } = await open([ping, guarded], { settings: { apiKey: 'k' }, listen: false })
  const fine = await http.fetch(new Request('http://localhost/api/ping'))
  expect([fine.status, await fine.json(), fine.headers.get('x-frame-options')]).toEqual([200, { pong: true }, 'DENY'])
  expect((await http.fetch(new Request('http://localhost/api/secret'))).status).toBe(401)
  expect(
    (await http.fetch(new Request('http://localhost/api/secret', { headers: { authorization: 'Bearer k' } }))).status,
  ).toBe(200)
})

test('a method that is refused is not named as allowed, however the path is written', async () => {
  const { url } = await open([
    item('GET', '/api/files/**:name'),
    item('PUT', '/api/files/**:name'),
    item('GET', '/api/one/:id'),
    item('GET', '/api/one/:id/two'),
  ])
  const pieces = ['/', '//', '/x', '/x/', '/x//', '/x///', '//x', '/x//y', '/%2f', '/x/%2f', '/.', '/x/two', '/x/two//']
  const wrong: string[] = []
  for (const path of ['/api/files', '/api/one', '/%61pi/one'].flatMap((start) => pieces.map((piece) => start + piece)))
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const { status, text } = await raw(
        Number(new URL(url).port),
        `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
      )
      const allowed = /^allow: (.*)$/im.exec(text)?.[1]?.split(', ') ?? []
      if (![200, 404, 405].includes(status) || (status === 405) !== (allowed.length > 0 && !allowed.includes(method)))
        wrong.push(`${method} ${path}: ${status} ${allowed.join()}`)
    }
  expect(wrong).toEqual([])
})

test('a reply the document does not tell of is a defect in development', async () => {
  const replies: Readonly<Record<string, Reply>> = {
    status: reply('{}', { 'content-type': 'application/json' }, 418),
    type: reply('<p>', { 'content-type': 'text/html' }),
    other: reply('<p>', { 'content-type': 'text/html' }, 502),
    usual: reply('{}', { 'content-type': 'application/json; charset=utf-8' }),
    declared: reply('{}', { 'content-type': 'application/json' }, 502),
    empty: reply(null, {}, 304),
  }
  const route = defineRoute({
    method: 'GET',
    path: '/api/replies/:id',
    summary: 'Replies',
    auth: 'public',
    effect: 'read',
    cost: 1,
    params: v.object({ id: v.string() }),
    returns: v.object({}),
    answers: { 304: { description: 'Unchanged' }, 502: { description: 'No answer', json: v.object({}) } },
    handle: ({ params }) => replies[params.id] ?? reply(null),
  })
  const { url, defects } = await open([route])
  const statuses: Record<string, number> = {}
  for (const id of Object.keys(replies)) statuses[id] = (await fetch(`${url}/api/replies/${id}`)).status
  expect(statuses).toEqual({ status: 500, type: 500, other: 500, usual: 200, declared: 502, empty: 304 })
  expect(defects.splice(0)).toHaveLength(3)
})
