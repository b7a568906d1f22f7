import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { TestHost } from '../../support/host.ts'
import { operator, pair, startPairing } from './devices.ts'
import type { Json } from '../../support/json.ts'

interface Taken {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: Json
}
let taken: Taken[]
let answer: (response: ServerResponse) => void
let url: string
let server: ReturnType<typeof createServer>
beforeEach(async () => {
  taken = []
  answer = (response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"1"}')
  }
  server = createServer((request, response) => {
    let text = ''
    request
      .on('data', (chunk) => {
        text += String(chunk)
      })
      .on('end', () => {
        taken.push({
          method: request.method ?? '',
          path: request.url ?? '',
          headers: request.headers,
          body: JSON.parse(text),
        })
        answer(response)
      })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterEach(async () => {
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
})
const start = (
  pairing: NonNullable<Parameters<typeof startPairing>[0]>,
  allow: string[] = ['127.0.0.1'],
): Promise<TestHost> => startPairing(pairing, { plugins: ['audit', 'pairing'], config: { outbound: { allow } } })
const notify = (host: TestHost, body: unknown) => host.json('POST', '/api/pairing/notify', body, operator)

describe('a notification', () => {
  it('goes to ntfy once for all devices, with a title of any characters', async () => {
    await using host = await start({
      push_provider: 'ntfy',
      ntfy_url: url,
      ntfy_topic: 'svc-7f3a',
      ntfy_token: 'tk_secret',
    })
    await pair(host, 'one')
    await pair(host, 'two')
    expect(await notify(host, { title: 'Schön ✓', message: 'The build\nis done.' })).toMatchObject({
      status: 200,
      body: { ok: true, notified: 2, failed: [] },
    })
    expect(taken).toMatchObject([
      {
        method: 'POST',
        path: '/',
        body: { topic: 'svc-7f3a', title: 'Schön ✓', message: 'The build\nis done.' },
        headers: { authorization: 'Bearer tk_secret', 'content-type': 'application/json' },
      },
    ])
    const { entries } = (await host.json('GET', '/api/audit/recent?event_type=network_access', undefined, operator))
      .body
    expect(entries.at(-1)).toMatchObject({
      event_type: 'network_access',
      details: 'notification of 18 characters to 2 devices through ntfy: taken',
    })
    expect(JSON.stringify([entries, host.log])).not.toMatch(/tk_secret|svc-7f3a/)
  })

  it('goes to gotify with the token of the application', async () => {
    await using host = await start({ push_provider: 'gotify', gotify_url: `${url}/push/`, gotify_token: 'A1b2' })
    await pair(host)
    expect((await notify(host, { message: 'hi' })).body).toEqual({ ok: true, notified: 1, failed: [] })
    expect(taken).toMatchObject([
      {
        path: '/push/message',
        body: { title: 'svc', message: 'hi', priority: 5 },
        headers: { 'x-gotify-key': 'A1b2' },
      },
    ])
  })

  it('that is not taken says for which devices, and why', async () => {
    await using host = await start({ push_provider: 'ntfy', ntfy_url: url, ntfy_topic: 'svc' })
    const { id } = await pair(host, 'Ada')
    answer = (response) => {
      response.writeHead(429, { 'content-type': 'application/json' }).end('{"error":"limit reached"}')
    }
    expect(await notify(host, { message: 'hi' })).toMatchObject({
      status: 502,
      body: {
        ok: false,
        notified: 0,
        failed: [{ device_id: id, display_name: 'Ada', error: 'ntfy answered 429: {"error":"limit reached"}' }],
      },
    })
  })

  it('to a service that never answers ends after push_timeout_ms, as the answer and the audit log say', async () => {
    await using host = await start({ push_provider: 'ntfy', ntfy_url: url, ntfy_topic: 'svc', push_timeout_ms: 1000 })
    await pair(host)
    answer = () => {}
    // What is left of the limit once the request is sent is less.
    const reason = /(did not answer in time|took longer than the whole exchange may) \((1000|\d{1,3}) ms\)/
    expect(await notify(host, { message: 'hi' })).toMatchObject({
      status: 502,
      body: { notified: 0, failed: [{ error: expect.stringMatching(reason) }] },
    })
    const { entries } = (await host.json('GET', '/api/audit/recent?event_type=network_access', undefined, operator))
      .body
    expect(entries.at(-1)).toMatchObject({ event_type: 'network_access', details: expect.stringMatching(reason) })
  })

  it('to a private address that nobody permitted is not sent', async () => {
    await using host = await start({ push_provider: 'ntfy', ntfy_url: url, ntfy_topic: 'svc' }, [])
    await pair(host)
    const { status, body } = await notify(host, { message: 'hi' })
    expect([status, body.failed[0].error]).toEqual([502, expect.stringContaining('[outbound] allow')])
    expect(taken).toEqual([])
  })

  it('reaches nobody while no device is paired, and nothing is sent', async () => {
    await using host = await start({ push_provider: 'ntfy', ntfy_url: url, ntfy_topic: 'svc' })
    expect(await notify(host, { message: 'hi' })).toMatchObject({
      status: 200,
      body: { ok: true, notified: 0, failed: [] },
    })
    expect(taken).toEqual([])
  })

  it.each([
    [{}, /push_provider/],
    [{ push_provider: 'ntfy' }, /ntfy_topic/],
    [{ push_provider: 'gotify', gotify_token: 'x' }, /gotify_url/],
  ] as const)('with the configuration %j says what is missing', async (pairing, missing) => {
    await using host = await start(pairing)
    const { status, body } = await notify(host, { message: 'hi' })
    expect([status, body.error.message]).toEqual([503, expect.stringMatching(missing)])
  })

  it.each([
    [{}],
    [{ message: '' }],
    [{ message: ' \n' }],
    [{ message: 5 }],
    [{ message: 'x'.repeat(4097) }],
    [{ message: 'hi', title: '' }],
    [{ message: 'hi', title: 'x'.repeat(251) }],
    [{ message: 'a\0b' }],
  ])('of %j is refused', async (body) => {
    await using host = await start({ push_provider: 'ntfy', ntfy_url: url, ntfy_topic: 'svc' })
    expect((await notify(host, body)).status).toBe(400)
  })
})
