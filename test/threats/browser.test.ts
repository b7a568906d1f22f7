import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { raw } from '../core/http/harness.ts'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

let host: TestHost
let agent: string
beforeAll(async () => {
  host = await startHost()
  agent = (
    await host.json('POST', '/api/agents', {
      manifest_toml: 'name = "target"\n[model]\nprovider = "builtin"\nmodel = "offline"\n',
    })
  ).body.agent_id
})
afterAll(() => host[Symbol.asyncDispose]())

const port = (): number => Number(new URL(host.url).port)
const evil = 'https://evil.example'

describe('threats: what a page in the same browser may do to a daemon without a key', () => {
  it.each([
    'evil.example',
    'evil.example:4545',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    '2130706433',
    '0',
    '[::ffff:7f00:1].evil.example',
    '127.0.0.1@evil.example',
    '',
    'svc.local',
  ])('Unauthenticated loopback + DNS rebinding: Host %s', async (name) => {
    const answer = await raw(port(), `GET /api/agents HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`)
    expect([400, 403]).toContain(answer.status)
    expect(answer.body).not.toContain(agent)
  })

  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    undefined,
    'application/json',
  ])('CSRF by simple request: %s', async (type) => {
    for (const from of [evil, 'null', 'http://127.0.0.1.evil.example', 'http://localhost.evil.example:4545']) {
      const response = await host.fetch('/api/shutdown', {
        method: 'POST',
        headers: { origin: from, ...(type === undefined ? {} : { 'content-type': type }) },
        body: '{}',
      })
      expect(response.status).toBe(403)
      const spawn = await host.fetch('/api/agents', {
        method: 'POST',
        headers: { origin: from, ...(type === undefined ? {} : { 'content-type': type }) },
        body: '{"manifest_toml":"name = \\"csrf\\""}',
      })
      expect(spawn.status).toBe(403)
    }
    // A form sends no Origin in old browsers, but says where it comes from.
    expect(
      (await host.fetch('/api/shutdown', { method: 'POST', headers: { 'sec-fetch-site': 'cross-site' } })).status,
    ).toBe(403)
    expect((await host.json('GET', '/api/agents')).body.map((one: { name: string }) => one.name)).toEqual(
      expect.not.arrayContaining(['csrf']),
    )
    expect(host.app.daemon.stopping).toBeUndefined()
  })

  it('CORS leak', async () => {
    for (const from of [evil, 'null', 'http://localhost.evil.example', 'file://', 'http://127.0.0.1:1@evil.example']) {
      for (const method of ['GET', 'OPTIONS']) {
        const response = await host.fetch('/api/agents', {
          method,
          headers: { origin: from, 'access-control-request-method': 'GET' },
        })
        await response.arrayBuffer()
        expect(response.headers.get('access-control-allow-origin')).toBeNull()
        expect(response.headers.get('access-control-allow-credentials')).toBeNull()
      }
    }
    const local = await host.fetch('/api/agents', { headers: { origin: 'http://localhost:3000' } })
    expect(local.headers.get('access-control-allow-origin')).toBe('http://localhost:3000')
    expect(local.headers.get('vary')?.toLowerCase()).toContain('origin')
  })

  it('Cross-site WebSocket hijack', async () => {
    for (const from of [evil, 'null', 'http://localhost.evil.example']) {
      const answer = await raw(
        port(),
        `GET /api/agents/${agent}/ws HTTP/1.1\r\nHost: 127.0.0.1:${port()}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: ${from}\r\n\r\n`,
      )
      expect(answer.status).toBe(403)
    }
  })
})
