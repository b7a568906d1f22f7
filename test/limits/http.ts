import { once } from 'node:events'
import { connect } from 'node:net'
import { expect } from 'vitest'
import { raw } from '../core/http/harness.ts'
import type { Answer } from '../support/host.ts'
import { refused } from './limit.ts'
import type { LimitGroup, LimitStage } from './limit.ts'
import type { Json } from '../support/json.ts'

const portOf = ({ host }: LimitStage): number => Number(new URL(host.url).port)
const key = { authorization: 'Bearer the-key' }
const handshake = (port: number, path: string, more: readonly string[] = []): string =>
  [
    `GET ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...more,
    '',
    '',
  ].join('\r\n')
async function rawAnswer(port: number, bytes: string): Promise<Answer> {
  const { status, headers, body } = await raw(port, bytes)
  return { status, headers, body: JSON.parse(body) }
}
async function socketOf(
  { host }: LimitStage,
  agent: string,
): Promise<{ readonly socket: WebSocket; readonly frames: Json[]; readonly closed: Promise<number> }> {
  const socket = new WebSocket(`${host.url.replace('http', 'ws')}/api/agents/${agent}/ws`)
  const frames: Json[] = []
  socket.addEventListener('message', ({ data }) => {
    frames.push(JSON.parse(String(data)))
  })
  const closed = new Promise<number>((resolve) => {
    socket.addEventListener('close', ({ code }) => resolve(code))
  })
  await once(socket, 'message')
  return { socket, frames, closed }
}

export const rates: LimitGroup = {
  name: 'requests of one address',
  config: () => ({ rate_limit: { tokens_per_minute: 40 } }),
  limits: {
    async 'rate_limit.tokens_per_minute'(stage) {
      const statuses: number[] = []
      for (let n = 0; n < 44; n++) statuses.push((await stage.host.fetch('/api/health')).status)
      expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(40)
      refused(await stage.host.json('GET', '/api/agents'), { status: 429, says: /^Rate limit exceeded$/ })
      refused(await rawAnswer(portOf(stage), handshake(portOf(stage), '/api/agents/x/ws')), {
        status: 429,
        says: /^Rate limit exceeded$/,
      })
    },
  },
}
export const keys: LimitGroup = {
  name: 'wrong keys of one address',
  config: () => ({ api_key: 'the-key', rate_limit: { failed_auth_per_minute: 3 } }),
  limits: {
    async 'rate_limit.failed_auth_per_minute'(stage) {
      for (let n = 0; n < 3; n++)
        expect((await stage.host.json('GET', '/api/agents', undefined, { authorization: `Bearer ${n}` })).status).toBe(
          401,
        )
      refused(await stage.host.json('GET', '/api/agents', undefined, key), {
        status: 429,
        says: /Too many failed authentication attempts/,
      })
      refused(
        await rawAnswer(portOf(stage), handshake(portOf(stage), '/api/agents/x/ws', ['Authorization: Bearer the-key'])),
        { status: 429, says: /failed authentication/ },
      )
    },
  },
}

export const http: LimitGroup = {
  name: 'requests and sockets',
  config: () => ({
    http: {
      max_body_bytes: 4096,
      max_header_bytes: 4096,
      max_json_depth: 8,
      socket_frame_bytes: 2048,
      sockets_per_address: 3,
    },
  }),
  limits: {
    async 'http.max_body_bytes'(stage) {
      const body = (chars: number) => ({ manifest_toml: `name = "big-${chars}"\n# ${'x'.repeat(chars)}` })
      expect((await stage.post('/api/agents', body(3000))).status).toBe(201)
      refused(await stage.post('/api/agents', body(5000)), {
        status: 413,
        code: 'payload_too_large',
        says: /larger than 4096 bytes.*http\.max_body_bytes/,
      })
      const chunk = `1000\r\n${'x'.repeat(4096)}\r\n`
      const port = portOf(stage)
      refused(
        await rawAnswer(
          port,
          `POST /api/agents HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n${chunk}${chunk}0\r\n\r\n`,
        ),
        { status: 413, code: 'payload_too_large', says: /4096/ },
      )
    },
    async 'http.max_header_bytes'(stage) {
      const port = portOf(stage)
      const withHeader = (chars: number) =>
        rawAnswer(
          port,
          `GET /api/health HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nX-Long: ${'x'.repeat(chars)}\r\nConnection: close\r\n\r\n`,
        )
      expect((await withHeader(3000)).status).toBe(200)
      refused(await withHeader(5000), {
        status: 431,
        code: 'invalid_request',
        says: /headers are too large.*http\.max_header_bytes/,
      })
    },
    async 'http.max_json_depth'(stage) {
      const nested = (depth: number): string => `{"value":${'['.repeat(depth)}${']'.repeat(depth)}}`
      const put = async (text: string): Promise<Answer> => {
        const response = await stage.host.fetch(`/api/agents`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: text,
        })
        return { status: response.status, headers: response.headers, body: await response.json() }
      }
      expect((await put(nested(6))).body.error.message).not.toMatch(/nested/)
      refused(await put(nested(9)), { status: 400, code: 'invalid_request', says: /nested.*8/ })
    },
    async 'http.socket_frame_bytes'(stage) {
      const { socket, frames, closed } = await socketOf(stage, await stage.agent())
      socket.send(JSON.stringify({ type: 'message', content: 'x'.repeat(3000) }))
      await once(socket, 'message')
      expect(frames.at(-1)).toMatchObject({ type: 'error', content: expect.stringMatching(/too large.*2KB/) })
      socket.send('x'.repeat(2048 * 4 + 1))
      expect(await closed).toBe(1009)
    },
    async 'http.sockets_per_address'(stage) {
      const port = portOf(stage)
      const path = `/api/agents/${await stage.agent()}/ws`
      const open = Array.from({ length: 3 }, () =>
        connect(port, '127.0.0.1', function (this: { write(text: string): void }) {
          this.write(handshake(port, path))
        }),
      )
      for (const socket of open) expect(String((await once(socket, 'data'))[0])).toContain('101 Switching')
      refused(await rawAnswer(port, handshake(port, path)), {
        status: 429,
        says: /Too many WebSocket connections.*3.*http\.sockets_per_address/,
      })
      // A place that is given back is one for another.
      const [first, ...rest] = open
      first?.destroy()
      let again = 429
      while (again === 429)
        again = Number(
          (
            await new Promise<string>((resolve) => {
              const socket = connect(port, '127.0.0.1', () => socket.write(handshake(port, path)))
              socket.once('data', (data) => {
                resolve(String(data))
                socket.destroy()
              })
            })
          ).split(' ')[1],
        )
      expect(again).toBe(101)
      for (const socket of rest) socket.destroy()
    },
  },
}

export const times: LimitGroup = {
  name: 'the time of a request',
  config: () => ({ http: { headers_timeout_ms: 300, request_timeout_ms: 900 } }),
  limits: {
    async 'http.headers_timeout_ms'(stage) {
      refused(await rawAnswer(portOf(stage), 'GET /api/health HTTP/1.1\r\nHost: x\r\nX-Slow: '), {
        status: 408,
        code: 'invalid_request',
        says: /not complete in time/,
      })
    },
    async 'http.request_timeout_ms'(stage) {
      const port = portOf(stage)
      refused(
        await rawAnswer(
          port,
          `POST /api/agents HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`,
        ),
        { status: 408, code: 'invalid_request', says: /not complete in time/ },
      )
    },
  },
}

export const idleSockets: LimitGroup = {
  name: 'the time of a socket on which nothing is said',
  config: () => ({ http: { socket_idle_ms: 1000 } }),
  limits: {
    async 'http.socket_idle_ms'(stage) {
      const { closed } = await socketOf(stage, await stage.agent())
      expect(await closed).toBe(1000)
    },
  },
}

export const hooks: LimitGroup = {
  name: 'requests of other programs',
  config: () => ({
    webhook_triggers: {
      enabled: true,
      token: 'a-token-of-more-than-thirty-two-characters',
      max_payload_bytes: 512,
      rate_limit_per_minute: 4,
    },
  }),
  limits: {
    async 'webhook_triggers.max_payload_bytes'({ host }) {
      const wake = (chars: number) =>
        host.json(
          'POST',
          '/api/hooks/wake',
          { text: 'x'.repeat(chars), mode: 'next_heartbeat' },
          { authorization: 'Bearer a-token-of-more-than-thirty-two-characters' },
        )
      expect((await wake(300)).status).toBe(200)
      refused(await wake(700), { status: 413, code: 'payload_too_large', says: /larger than 512 bytes/ })
    },
    async 'webhook_triggers.rate_limit_per_minute'({ host }) {
      const answers: Answer[] = []
      for (let n = 0; n < 6; n++)
        answers.push(
          await host.json(
            'POST',
            '/api/hooks/wake',
            { text: 'x', mode: 'next_heartbeat' },
            { authorization: 'Bearer a-token-of-more-than-thirty-two-characters' },
          ),
        )
      expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(3)
      const last = answers.at(-1)
      if (last) refused(last, { status: 429, says: /More than 4 requests in a minute/ })
    },
  },
}
