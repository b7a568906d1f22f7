import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PluginTest } from 'svc/testing'
import type { Json } from '../../support/json.ts'
import { startProtectedServer } from '../../support/oauth-mcp.ts'
import type { ProtectedServer } from '../../support/oauth-mcp.ts'
import { startMcp, untilState } from './servers.ts'

const SECRET = 'the-secret-of-the-robot'
let remote: ProtectedServer
let test: PluginTest
beforeAll(async () => {
  remote = await startProtectedServer()
  const config = { outbound: { allow: ['127.0.0.1'] } }
  test = await startMcp([], {}, config, { database: 'file', fetch: 'network' })
})
afterAll(() => Promise.all([test[Symbol.asyncDispose](), remote[Symbol.asyncDispose]()]))

const call = (method: string, path: string, body?: unknown) =>
  test.request<Json>(method, `/api/mcp/servers${path}`, body)
const robot = (name: string, more: object) => ({
  name,
  url: remote.url,
  oauth: { client_id: 'robot', scopes: ['mcp'], grant: 'client_credentials', ...more },
})
const whoami = async (): Promise<string> => (await test.callTool('mcp_robot_whoami', {})).text

describe('a server with a client of its own, added over the API', () => {
  it('logs in by itself, also after a change and a restart; its secret is shown nowhere', async () => {
    const added = await call('POST', '', robot('robot', { client_secret: SECRET }))
    expect(added).toMatchObject({ status: 201, body: { state: 'connected' } })
    expect(await whoami()).toBe('ada')
    expect(await call('PUT', '/robot', { timeout_secs: 30 })).toMatchObject({ body: { state: 'connected' } })
    await test.restart()
    await call('POST', '/robot/restart')
    await untilState(test, 'robot', 'connected')
    expect(await whoami()).toBe('ada')
    expect(remote.grants).toContain('client_credentials')
    const shown = JSON.stringify([added.body, await call('GET', '/robot'), test.log])
    const files = await Promise.all(['svc.db', 'svc.db-wal'].map((file) => readFile(join(test.home, 'data', file))))
    expect(shown + Buffer.concat(files).toString('latin1')).not.toContain(SECRET)
  })

  it('sends its secret nowhere else, and keeps its login when it cannot be moved', async () => {
    const elsewhere = { url: `${remote.issuer}/mcp` }
    const { status, body } = await call('PUT', '/robot', elsewhere)
    expect([status, body.error.message]).toEqual([
      400,
      expect.stringMatching(/^oauth\.client_secret: .*another address/),
    ])
    const grants = remote.grants.length
    const moved = await call('PUT', '/robot', { ...elsewhere, oauth: robot('robot', { client_secret: SECRET }).oauth })
    expect(moved.status).toBe(502)
    expect(await call('GET', '/robot')).toMatchObject({ body: { url: remote.url, state: 'connected' } })
    await call('POST', '/robot/restart')
    expect(await whoami()).toBe('ada')
    expect(remote.grants).toHaveLength(grants)
  })

  it('says what is wrong with a key, without showing it', async () => {
    const { status, body } = await call('POST', '', robot('broken', { private_key: 'not-a-key-0815' }))
    expect(status).toBe(400)
    expect(body.error.message).toContain('oauth.private_key')
    expect(JSON.stringify([body, test.log])).not.toContain('not-a-key-0815')
    expect((await call('GET', '/broken')).status).toBe(404)
  })

  it('is not taken from the file with a key that cannot sign, which is not shown', async () => {
    const started = startMcp([robot('file', { private_key: 'not-a-key-0815' })])
    await expect(started).rejects.toThrow(/private_key.*a private key \(PEM/)
    await expect(started).rejects.not.toThrow('not-a-key-0815')
  })

  it('fails as the server does', async () => {
    const { status, body } = await call('POST', '', robot('stranger', { client_secret: 'another' }))
    expect([status, body.error.code]).toEqual([502, 'mcp_server_failed'])
  })
})
