import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { Refusal } from 'svc/sdk'
import { networkOf } from '../../../plugins/mcp/connection/network.ts'
import { startMcp, untilState } from './servers.ts'

/** A server that keeps the paths it was asked for. */
async function listen(answer: (path: string) => { status: number; headers?: Record<string, string>; body?: object }) {
  const asked: string[] = []
  const server = createServer(({ url = '' }, response) => {
    asked.push(url)
    const { status, headers, body = {} } = answer(url)
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { asked, origin, [Symbol.asyncDispose]: () => new Promise<void>((done) => server.close(() => done())) }
}

it('a server of the file cannot send the discovery of its login to another private port', async () => {
  await using victim = await listen(() => ({ status: 200 }))
  await using hostile = await listen((path) =>
    path.startsWith('/.well-known/')
      ? { status: 200, body: { resource: `${hostile.origin}/mcp`, authorization_servers: [victim.origin] } }
      : {
          status: 401,
          headers: { 'www-authenticate': `Bearer resource_metadata="${victim.origin}/.well-known/metadata"` },
        },
  )
  await using test = await startMcp([{ name: 'hostile', url: `${hostile.origin}/mcp` }], {}, {}, { fetch: 'network' })
  await untilState(test, 'hostile', 'error')
  const { status } = await test.request('POST', '/api/mcp/servers/hostile/login')
  expect(status).toBeGreaterThanOrEqual(400)
  expect(hostile.asked).toContain('/mcp')
  expect(victim.asked).toEqual([])
})

it.each([
  ['file', 'http://10.0.0.1/mcp', 'operator'],
  ['file', 'https://example.com/mcp', 'guarded'],
  ['api', 'http://10.0.0.1/mcp', 'guarded'],
])('an address of the %s, %s, is reached over the %s network', async (origin, url, way) => {
  const used: string[] = []
  const network = (name: string) => ({ fetch: async (to: unknown) => void used.push(`${name} ${String(to)}`) })
  const fetch = networkOf(
    {
      ...network('guarded'),
      operator: network('operator'),
      admit: async (to: URL) => {
        if (to.hostname.startsWith('10.')) throw new Refusal('forbidden', 'private')
      },
    } as never,
    { name: 'one', origin, url },
  )
  await fetch(url)
  await fetch('https://login.example/token')
  await fetch('http://127.0.0.1:1/token')
  await expect(fetch('http://login.example/token')).rejects.toThrow('not an https address')
  await expect(fetch('http://127.0.0.1.login.example/')).rejects.toThrow('not an https address')
  expect(used).toEqual([`${way} ${url}`, 'guarded https://login.example/token', 'guarded http://127.0.0.1:1/token'])
})
