import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { startHost } from '../../support/host.ts'
import { temporaryFolder } from '../../support/plugin-folder.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'

const example = fileURLToPath(new URL('../../../docs/deployment/haproxy.cfg', import.meta.url))

it('HAProxy, configured as documented, sends nothing to a daemon that drains', async () => {
  await using folder = await temporaryFolder()
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const start = async (name: string) => {
    const host = await startHost({
      plugins: ['audit', 'cluster', 'system'],
      config: {
        database_url: database.url,
        plugins: { cluster: { name } },
        http: { allowed_hosts: ['balancer.example.org'] },
      },
    })
    onTestFinished(() => host[Symbol.asyncDispose]())
    return host
  }
  const hosts = [await start('one'), await start('other')] as const

  const socket = join(folder.path, 'balancer.sock')
  const text = (await readFile(example, 'utf8'))
    .replace('hdr Host localhost', 'hdr Host balancer.example.org')
    .replace('bind :4545', `bind unix@${socket}`)
    .replace(/^ {2}server svc-3 .*$/m, '')
    .replace('10.0.0.11:4545', new URL(hosts[0].url).host)
    .replace('10.0.0.12:4545', new URL(hosts[1].url).host)
  const file = join(folder.path, 'haproxy.cfg')
  await writeFile(file, text)
  expect(spawnSync('haproxy', ['-c', '-f', example]).status).toBe(0)
  const balancer = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' })
  onTestFinished(async () => {
    balancer.kill('SIGKILL')
    await once(balancer, 'exit')
  })

  const asked = () => ask(socket, '/api/cluster')
  const answering = async (): Promise<readonly string[]> =>
    [...new Set(await Promise.all(Array.from({ length: 8 }, asked)))].toSorted()
  await eventually(async () => expect(await answering()).toEqual(['one', 'other']))
  await hosts[0].json('POST', '/api/cluster/members/self/drain')
  await eventually(async () => expect(await answering()).toEqual(['other']))
  await hosts[0].json('POST', '/api/cluster/members/self/undrain')
  await eventually(async () => expect(await answering()).toEqual(['one', 'other']))

  await Promise.all(hosts.map((host) => host[Symbol.asyncDispose]()))
  await eventually(async () => {
    const { statusCode, headers, body } = await get(socket, '/api/agents')
    expect([statusCode, headers['retry-after'], headers['content-type']]).toEqual([503, '5', 'application/json'])
    expect(body).toMatchObject({ error: { code: 'service_unavailable' } })
  })
})

/** The name of the daemon that answers. */
async function ask(socketPath: string, path: string): Promise<string> {
  const { members } = (await get(socketPath, path)).body as { members: readonly { name: string; self: boolean }[] }
  return members.find(({ self }) => self)?.name ?? ''
}

async function get(socketPath: string, path: string) {
  const { request } = await import('node:http')
  const { json } = await import('node:stream/consumers')
  const sent = request({ socketPath, path, headers: { host: 'balancer.example.org' }, agent: false }).end()
  const [{ statusCode, headers }, body] = await once(sent, 'response').then(
    async ([answer]) => [answer, await json(answer)] as const,
  )
  return { statusCode, headers, body }
}
