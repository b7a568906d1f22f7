import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:tls'
import { expect, test } from 'vitest'
import { defineSocket } from '../../../core/http/route.ts'
import { missingHeaders, open, parseAnswer, ping } from './harness.ts'

test('TLS with a certificate of its own serves requests, upgrades and errors with the same headers', async () => {
  const socket = defineSocket({
    path: '/api/ws',
    summary: 'S',
    auth: 'public',
    cost: 1,
    effect: 'conversation',
    frameCost: 1,
    accept: () => null,
    open() {},
    frame() {},
  })
  const { url, port } = await open([ping], { settings: { tls: true, maxHeaderBytes: 4096 }, sockets: [socket] })
  expect(url).toMatch(/^https:\/\/127\.0\.0\.1:/)
  const sent = request(`${url}/api/ping`, { rejectUnauthorized: false }).end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  const body = (await answer.toArray()).join('')
  expect([answer.statusCode, body, missingHeaders(new Headers(answer.headers as Record<string, string>))]).toEqual([
    200,
    '{"pong":true}',
    [],
  ])
  const speak = async (text: string) => {
    const link = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
    link.on('error', () => link.destroy())
    await once(link, 'secureConnect')
    link.write(text)
    const [data] = (await once(link, 'data')) as [Buffer]
    link.destroy()
    return parseAnswer(data.toString())
  }
  const upgraded = await speak(
    [
      'GET /api/ws HTTP/1.1',
      'Host: localhost',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      '',
      '',
    ].join('\r\n'),
  )
  expect([upgraded.status, missingHeaders(upgraded.headers)]).toEqual([101, []])
  for (const text of [
    'garbage\r\n\r\n',
    'GET / HTTP/1.1\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: localhost\r\nExpect: tea\r\n\r\n',
  ]) {
    const refused = await speak(text)
    expect([refused.status >= 400, missingHeaders(refused.headers)]).toEqual([true, []])
  }
  expect((await speak('GET /api/ping HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n')).status).toBe(400)
  expect((await speak(`GET /api/ping HTTP/1.1\r\nHost: localhost\r\nX: ${'y'.repeat(5000)}\r\n\r\n`)).status).toBe(431)
})

test('a port that is taken is an error, with TLS and without', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as AddressInfo
  await expect(open([ping], { settings: { port } })).rejects.toThrow('EADDRINUSE')
  await expect(open([ping], { settings: { port, tls: true } })).rejects.toThrow(/taken|EADDRINUSE/)
  taken.close()
})
