import { connect } from 'node:net'
import { once } from 'node:events'
import { describe, expect, it, test } from 'vitest'
import * as v from 'valibot'
import { defineRoute, rawBody } from '../../../core/http/route.ts'
import { echo, missingHeaders, open, parseAnswer, ping, raw } from './harness.ts'
import type { CodedBody } from './harness.ts'

const json = { 'content-type': 'application/json' }
const named = defineRoute({
  method: 'POST',
  path: '/api/named',
  summary: 'Named',
  auth: 'public',
  effect: 'conversation',
  cost: 1,
  body: v.object({ name: v.string() }),
  returns: v.unknown(),
  handle: ({ body }) => body,
})
const lenient = defineRoute({
  method: 'POST',
  path: '/api/lenient',
  summary: 'L',
  auth: 'public',
  effect: 'conversation',
  cost: 1,
  body: v.object({ name: v.optional(v.string(), 'nobody') }),
  returns: v.unknown(),
  handle: ({ body }) => body,
})
const bytes = defineRoute({
  method: 'PUT',
  path: '/api/bytes',
  summary: 'B',
  auth: 'public',
  effect: 'conversation',
  cost: 1,
  body: rawBody(100),
  returns: v.unknown(),
  handle: ({ body }) => ({ size: body.byteLength }),
})

async function post(url: string, body: string | Uint8Array, headers: Record<string, string> = json) {
  const answer = await fetch(url, { method: 'POST', body: body as BodyInit, headers })
  return { status: answer.status, body: (await answer.json()) as CodedBody }
}

test('malformed JSON is 400 and says where', async () => {
  const { url } = await open([echo])
  const cases: [string, number][] = [
    ['{', 1],
    ['hello', 0],
    ['{"a":1,}', 7],
    ['[1,\n 2 3]', 7],
    ['{"a" 1}', 5],
    ['"ab', 3],
    ['"a\nb"', 2],
    ['"\\x"', 2],
    ['"\\u12g4"', 2],
    ['{"a":1} x', 8],
    ['01', 1],
    ['{a:1}', 1],
    ['[1}', 2],
  ]
  for (const [text, position] of cases) {
    const { status, body } = await post(`${url}/api/echo`, text)
    expect([text, status, body.error.details['position'], body.error.message]).toEqual([
      text,
      400,
      position,
      expect.stringContaining('The body is not valid JSON'),
    ])
  }
})

test('a body with wrong fields is 400 and names them', async () => {
  const { url } = await open([named])
  const { status, body } = await post(`${url}/api/named`, '{"name":1}')
  expect([status, body.error.code]).toEqual([400, 'invalid_request'])
  expect(body.error.message).toContain('name: ')
  const issues = [{ path: 'name', message: 'is missing' }]
  expect((await post(`${url}/api/named`, '{}')).body.error).toMatchObject({
    message: 'name: is missing',
    details: { issues },
  })
})

test('an empty body labelled as JSON is fine where nothing is needed', async () => {
  const { url } = await open([lenient, named])
  expect(await (await fetch(`${url}/api/lenient`, { method: 'POST', headers: json })).json()).toEqual({
    name: 'nobody',
  })
  expect((await fetch(`${url}/api/named`, { method: 'POST', headers: json })).status).toBe(400)
})

test('a GET with a JSON content type and no body is fine', async () => {
  const { url } = await open([ping])
  expect((await fetch(`${url}/api/ping`, { headers: json })).status).toBe(200)
})

test('a body that is not UTF-8 is 400', async () => {
  const { url } = await open([echo])
  expect((await post(`${url}/api/echo`, new Uint8Array([0x22, 0xff, 0x22]))).body.error.message).toBe(
    'The body is not valid UTF-8',
  )
})

test('a body nested too deep is 400, whatever stands in its strings', async () => {
  const { url } = await open([echo])
  expect((await post(`${url}/api/echo`, '['.repeat(33) + ']'.repeat(33))).status).toBe(400)
  expect((await post(`${url}/api/echo`, '['.repeat(32) + ']'.repeat(32))).status).toBe(200)
  expect((await post(`${url}/api/echo`, JSON.stringify({ text: '[{'.repeat(100) + '"\\' }))).status).toBe(200)
})

test('prototype keys reach nobody', async () => {
  const { url } = await open([echo])
  const { body } = await post(`${url}/api/echo`, '{"a":{"__proto__":{"x":1}},"\\u005f_proto__":{"y":1},"z":1}')
  expect(JSON.stringify(body)).toBe('{"a":{},"z":1}')
})

test('only JSON types are taken for JSON', async () => {
  const { url } = await open([echo])
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonx',
    'x',
  ]) {
    const { status, body } = await post(`${url}/api/echo`, '{}', { 'content-type': type })
    expect([type, status, body.error.message]).toEqual([type, 400, expect.stringContaining('send application/json')])
  }
  for (const type of ['application/json; charset=utf-8', 'Application/JSON', 'application/vnd.api+json'])
    expect((await post(`${url}/api/echo`, '{}', { 'content-type': type })).status).toBe(200)
})

test('a compressed body is refused with a clear text', async () => {
  const { url } = await open([echo])
  const { status, body } = await post(`${url}/api/echo`, '{}', { ...json, 'content-encoding': 'gzip' })
  expect([status, body.error.message]).toEqual([400, 'Content-Encoding gzip is not accepted; send the body as it is'])
})

test('a body that is too large is 413, announced or not', async () => {
  const { url } = await open([echo])
  expect((await post(`${url}/api/echo`, `"${'x'.repeat(20_000)}"`)).status).toBe(413)
  const stream = new ReadableStream({
    start(controller) {
      for (let n = 0; n < 30; n++) controller.enqueue(new TextEncoder().encode('x'.repeat(1000)))
      controller.close()
    },
  })
  const answer = await fetch(`${url}/api/echo`, {
    method: 'POST',
    body: stream,
    duplex: 'half',
    headers: json,
  } as RequestInit)
  expect([answer.status, ((await answer.json()) as CodedBody).error.code]).toEqual([413, 'payload_too_large'])
})

test('a client that goes on sending after 413 is cut, and one that stops may go on using its connection', async () => {
  const { port } = await open([echo, ping])
  const head = 'POST /api/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
  const endless = connect(port, '127.0.0.1').on('error', () => endless.destroy())
  endless.write(`${head}Content-Length: 100000000\r\n\r\n`)
  const [first] = (await once(endless, 'data')) as [Buffer]
  expect(parseAnswer(first.toString()).status).toBe(413)
  const flood = setInterval(() => {
    endless.write(Buffer.alloc(500_000))
  }, 10)
  await new Promise((resolve) => endless.on('close', resolve))
  clearInterval(flood)
  const polite = connect(port, '127.0.0.1')
  polite.write(`${head}Content-Length: 20000\r\n\r\n${'x'.repeat(20_000)}`)
  expect(parseAnswer(String((await once(polite, 'data'))[0])).status).toBe(413)
  polite.write('GET /api/ping HTTP/1.1\r\nHost: localhost\r\n\r\n')
  expect(parseAnswer(String((await once(polite, 'data'))[0])).status).toBe(200)
  polite.destroy()
})

test('a route may take the bytes as they are, up to its own limit', async () => {
  const { url } = await open([bytes])
  expect(
    await (
      await fetch(`${url}/api/bytes`, {
        method: 'PUT',
        body: new Uint8Array(50),
        headers: { 'content-type': 'image/png' },
      })
    ).json(),
  ).toEqual({ size: 50 })
  expect((await fetch(`${url}/api/bytes`, { method: 'PUT', body: new Uint8Array(101) })).status).toBe(413)
  expect(await (await fetch(`${url}/api/bytes`, { method: 'PUT' })).json()).toEqual({ size: 0 })
})

test('the body of a refused request is not read', async () => {
  const { url } = await open([echo], { settings: { apiKey: 'k' } })
  expect((await fetch(`${url}/api/echo`, { method: 'POST', body: '{', headers: json })).status).toBe(401)
})

test('a client that leaves before its body is complete harms nobody', async () => {
  const { port, url, metrics, scope } = await open([echo, ping])
  const socket = connect(port, '127.0.0.1')
  socket.write('POST /api/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{')
  await expect.poll(() => scope.running).toBe(1)
  socket.destroy()
  await expect.poll(() => metrics.render()).toContain('{method="POST",status="499"} 1')
  expect((await fetch(`${url}/api/ping`)).status).toBe(200)
})

describe('Expect: 100-continue', () => {
  const route = defineRoute({
    method: 'POST',
    path: '/echo',
    summary: 'Says how long a body is',
    auth: 'bearer',
    effect: 'conversation',
    cost: 1,
    body: rawBody(100),
    returns: v.object({ bytes: v.number() }),
    handle: ({ body }) => ({ bytes: body.byteLength }),
  })
  const head = (path: string, length: number, more = ''): string =>
    `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\nExpect: 100-continue\r\n${more}\r\n`

  it.each([
    ['a length over the limit', '/echo', 1_000_000, '', 413],
    ['a path that is not there', '/nowhere', 10, '', 404],
    ['a method it does not have', '/api/ping', 10, '', 405],
    ['a wrong key', '/echo', 10, 'Authorization: Bearer wrong\r\n', 401],
  ])('with %s is answered at once and never asked for the body', async (_, path, length, more, status) => {
    const { port } = await open([route, ping], more === '' ? {} : { settings: { apiKey: 'the-key' } })
    const answer = await raw(port, head(path, length, more))
    expect(answer.status).toBe(status)
    expect(answer.text).not.toContain('100 Continue')
    expect(answer.headers.get('connection')).toBe('close')
    expect(missingHeaders(answer.headers)).toEqual([])
  })
  it('is asked for a body that is read, and then answered', async () => {
    const { port } = await open([route])
    const socket = connect(port, '127.0.0.1')
    const heard = async (pattern: RegExp, so = ''): Promise<string> =>
      pattern.test(so) ? so : heard(pattern, so + String((await once(socket, 'data'))[0]))
    socket.write(head('/echo', 3))
    expect(await heard(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\n$/)
    socket.write('abc')
    expect(await heard(/\}/)).toMatch(/^HTTP\/1\.1 200 OK[^]*\{"bytes":3\}$/)
    socket.destroy()
  })
})

test('a list in the place of an object is 400 and says where', async () => {
  const inner = v.optional(v.object({ name: v.optional(v.string()) }))
  const body = v.object({
    inner,
    table: v.nullish(v.record(v.string(), v.number())),
    rows: v.optional(v.array(v.object({ inner }))),
    either: v.optional(v.union([v.array(v.string()), v.object({ name: v.optional(v.string()) })])),
  })
  const given = { method: 'POST', summary: 'G', auth: 'public', effect: 'conversation', cost: 1 } as const
  const answers = { returns: v.unknown(), handle: () => ({}) }
  const table = defineRoute({ ...given, ...answers, path: '/api/table', body: v.record(v.string(), v.number()) })
  const { url } = await open([table, defineRoute({ ...given, ...answers, path: '/api/deep', body })])
  const refused: [path: string, body: string, place: string][] = [
    ['/api/table', '[]', 'body'],
    ['/api/deep', '[]', 'body'],
    ['/api/deep', '{"inner":[]}', 'inner'],
    ['/api/deep', '{"table":[1]}', 'table'],
    ['/api/deep', '{"rows":[{},{"inner":[]}]}', 'rows.1.inner'],
  ]
  for (const [path, sent, place] of refused) {
    const { status, body: answer } = await post(url + path, sent)
    expect([sent, status, answer.error?.message]).toEqual([
      sent,
      400,
      `${place}: Expected an object but received a list`,
    ])
  }
  expect((await post(`${url}/api/deep`, '{"inner":{},"table":{"a":1},"rows":[{}],"either":["a"]}')).status).toBe(200)
})
