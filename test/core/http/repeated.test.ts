import { expect, it } from 'vitest'
import { defineSocket } from '../../../core/http/route.ts'
import { echo, guarded, open, ping, raw } from './harness.ts'

const socket = defineSocket({
  path: '/api/ws',
  summary: 'A socket',
  auth: 'bearer',
  cost: 1,
  effect: 'conversation',
  frameCost: 1,
  accept: () => undefined,
  open: () => undefined,
  frame: () => undefined,
})
const upgrade = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]

/** The answer to a request of exactly these lines. */
const send = (port: number, line: string, headers: readonly string[], body = '') =>
  raw(
    port,
    [line, ...headers, ...(headers.includes('Connection: Upgrade') ? [] : ['Connection: close']), '', body].join(
      '\r\n',
    ),
  )

it.each([
  ['another one', ['Host: localhost', 'Host: evil.example']],
  ['the other one first', ['Host: evil.example', 'Host: localhost']],
  ['the same', ['Host: localhost', 'Host: localhost']],
  ['an empty one', ['Host: localhost', 'Host:']],
  ['in other case', ['Host: localhost', 'HOST: 127.0.0.1']],
  ['far apart', ['Host: localhost', ...Array.from({ length: 50 }, (_, n) => `X-${n}: y`), 'Host: localhost']],
])('a second Host header is 400 for requests and upgrades, with and without a key: %s', async (_, hosts) => {
  for (const apiKey of [undefined, 'the-key']) {
    const { port } = await open([ping], { settings: { apiKey }, sockets: [socket] })
    const key = apiKey === undefined ? [] : [`Authorization: Bearer ${apiKey}`]
    const answers = [
      await send(port, 'GET /api/ping HTTP/1.1', hosts),
      await send(port, 'GET /api/ws HTTP/1.1', [...hosts, ...upgrade, ...key]),
    ]
    for (const { status, body } of answers)
      expect([status, JSON.parse(body).error]).toEqual([
        400,
        expect.objectContaining({ code: 'invalid_request', message: expect.stringMatching(/Host header/) }),
      ])
    expect(
      (
        await send(port, 'GET /api/ws HTTP/1.1', [
          'Host: localhost',
          ...upgrade,
          'Origin: http://localhost:1',
          'Origin: https://evil.example',
          ...key,
        ])
      ).status,
    ).toBe(403)
  }
})

it.each([
  ['the right one first', ['the-key', 'wrong']],
  ['the right one last', ['wrong', 'the-key']],
  ['twice the same', ['the-key', 'the-key']],
])('of two keys none counts: %s', async (_, keys) => {
  const { port, failures } = await open([guarded], { settings: { apiKey: 'the-key' }, sockets: [socket] })
  const headers = ['Host: localhost', ...keys.map((key) => `Authorization: Bearer ${key}`)]
  for (const { status, body } of [
    await send(port, 'GET /api/secret HTTP/1.1', headers),
    await send(port, 'GET /api/ws HTTP/1.1', [...headers, ...upgrade]),
  ]) {
    expect([status, JSON.parse(body).error]).toEqual([
      400,
      expect.objectContaining({
        code: 'invalid_request',
        message: expect.stringMatching(/more than one Authorization header/i),
      }),
    ])
  }
  expect(failures).toEqual([])
  // A ticket or another header beside it changes nothing.
  expect((await send(port, 'GET /api/secret HTTP/1.1', [...headers, 'X-Api-Key: the-key'])).status).toBe(400)
  expect(
    (await send(port, 'GET /api/secret HTTP/1.1', ['Host: localhost', 'X-Api-Key: the-key', 'X-Api-Key: the-key']))
      .status,
  ).toBe(401)
})

it.each([
  ['JSON, then text', ['application/json', 'text/plain']],
  ['text, then JSON', ['text/plain', 'application/json']],
  ['with parameters', ['application/json; charset=utf-8', 'text/plain']],
  ['in one line', ['application/json; charset=utf-8, application/json']],
])('of two content types none counts: %s', async (_, types) => {
  const { port } = await open([echo])
  const { status, body } = await send(
    port,
    'POST /api/echo HTTP/1.1',
    ['Host: localhost', 'Content-Length: 2', ...types.map((type) => `Content-Type: ${type}`)],
    '{}',
  )
  expect([status, JSON.parse(body).error]).toEqual([
    400,
    expect.objectContaining({ code: 'invalid_request', message: expect.stringMatching(/Content-Type/) }),
  ])
})

it('a comma in a quoted parameter is no second content type', async () => {
  const { port } = await open([echo])
  expect(
    (
      await send(
        port,
        'POST /api/echo HTTP/1.1',
        ['Host: localhost', 'Content-Length: 2', 'Content-Type: application/json; charset="utf-8"; x="a,b"'],
        '{}',
      )
    ).status,
  ).toBe(200)
  expect((await send(port, 'POST /api/echo HTTP/1.1', ['Host: localhost', 'Content-Length: 2'], '{}')).status).toBe(200)
})
