import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'
import { fixture } from './servers.ts'

const section = (name: string, more = ''): string =>
  `[[mcp_servers]]\nname = "${name}"\nlazy = false\ncommand = ${JSON.stringify(process.execPath)}\n` +
  `args = [${JSON.stringify(fixture)}]\n${more}`

it('a changed file starts, stops and restarts only the servers that changed', async () => {
  await using cleanup = new AsyncDisposableStack()
  const home = await mkdtemp(join(tmpdir(), 'svc-mcp-file-'))
  cleanup.defer(() => rm(home, { recursive: true, force: true }))
  await writeFile(join(home, 'config.toml'), section('kept') + section('changed') + section('gone'))
  await using host = await startHost({ home, memory: true, plugins: [...turnPlugins, 'settings', 'mcp'] })
  const apply = async (...sections: string[]): Promise<Json> => {
    await writeFile(join(home, 'config.toml'), sections.join(''))
    return await host.json('POST', '/api/config/reload')
  }
  /** The process of each server, once all of them are connected. */
  const pids = (...names: string[]): Promise<Readonly<Record<string, number>>> =>
    eventually(async () => {
      const { servers } = (await host.json('GET', '/api/mcp/servers')).body
      expect(servers.map(({ name, state }: Json) => [name, state])).toEqual(names.map((name) => [name, 'connected']))
      return Object.fromEntries(servers.map(({ name, pid }: Json) => [name, pid]))
    })
  const before = await pids('kept', 'changed', 'gone')
  const { body } = await apply(section('kept'), section('changed', 'timeout_secs = 5\n'), section('new'))
  expect(body).toMatchObject({ status: 'applied', hot_actions_applied: ['mcp'] })
  const after = await pids('kept', 'changed', 'new')
  expect(after['kept']).toBe(before['kept'])
  expect(after['changed']).not.toBe(before['changed'])
  const oauth = '[[mcp_servers]]\nname = "b"\nurl = "https://example.com/mcp"\n[mcp_servers.oauth]\nclient_id = "x"\n'
  const wrong = await apply(section('kept'), oauth, 'private_key = "not-a-key-0815"\n')
  expect([wrong.status, wrong.body.error.message]).toEqual([
    400,
    expect.stringMatching(/config\.toml:11:1: mcp_servers\.1\.oauth\.private_key: expected a private key \(PEM/),
  ])
  expect(wrong.body.error.message).not.toContain('0815')
  expect(await pids('kept', 'changed', 'new')).toEqual(after)
  for (const name of ['changed', 'gone']) expect(() => process.kill(before[name] ?? 0, 0), name).toThrow('ESRCH')
})

it('a server that the file names while one of its name is added over the API stays that of the file', async () => {
  await using cleanup = new AsyncDisposableStack()
  const home = await mkdtemp(join(tmpdir(), 'svc-mcp-file-'))
  cleanup.defer(() => rm(home, { recursive: true, force: true }))
  const asked = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<void>()
  const remote = createServer((request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    asked.resolve()
    void Promise.all([text(request), answered.promise]).then(([body]) => {
      const { id, method, params } = JSON.parse(body) as Json
      if (id === undefined) return response.writeHead(202).end()
      const serverInfo = { name: 'one', version: '1' }
      const hello = { protocolVersion: params?.protocolVersion, capabilities: {}, serverInfo }
      const outcome = method === 'initialize' ? { result: hello } : { error: { code: -32_601, message: 'no' } }
      response.writeHead(200, { 'content-type': 'application/json' })
      return response.end(JSON.stringify({ jsonrpc: '2.0', id, ...outcome }))
    })
  })
  await new Promise<void>((resolve) => remote.listen(0, '127.0.0.1', resolve))
  cleanup.defer(() => void remote.close().closeAllConnections())
  const allowed = '[outbound]\nallow = ["127.0.0.1"]\n'
  await writeFile(join(home, 'config.toml'), allowed)
  await using host = await startHost({ home, memory: true, plugins: [...turnPlugins, 'settings', 'mcp'] })
  const { port } = remote.address() as AddressInfo
  const adding = host.json<Json>('POST', '/api/mcp/servers', { name: 'one', url: `http://127.0.0.1:${port}/mcp` })
  await asked.promise
  await writeFile(join(home, 'config.toml'), section('one') + allowed)
  expect((await host.json('POST', '/api/config/reload')).status).toBe(200)
  answered.resolve()
  const { status, body } = await adding
  expect([status, body.error?.message]).toEqual([409, expect.stringContaining('stands in [[mcp_servers]]')])
  const { servers } = (await host.json<Json>('GET', '/api/mcp/servers')).body
  expect(servers.map(({ name, origin }: Json) => [name, origin])).toEqual([['one', 'file']])
})
