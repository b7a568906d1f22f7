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

  it('says what is wrong with a key, without showing it', async () => {
    const { status, body } = await call('POST', '', robot('broken', { private_key: 'not-a-key-0815' }))
    expect(status).toBe(400)
    expect(body.error.message).toContain('oauth.private_key')
    expect(JSON.stringify([body, test.log])).not.toContain('not-a-key-0815')
    expect((await call('GET', '/broken')).status).toBe(404)
  })

  it('fails as the server does', async () => {
    const { status, body } = await call('POST', '', robot('stranger', { client_secret: 'another' }))
    expect([status, body.error.code]).toEqual([502, 'mcp_server_failed'])
  })
})
