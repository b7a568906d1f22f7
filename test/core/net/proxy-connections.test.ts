import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmdirSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { MetricRegistry } from '../../../core/metrics/registry.ts'
import { createOutbound } from '../../../core/net/outbound.ts'
import { ProgramNetwork } from '../../../core/net/program-network.ts'
import { openProxy } from '../../../core/net/proxy.ts'
import type { ProgramProxy } from '../../../core/process/running-program.ts'
import { startHost } from '../../support/host.ts'

it('closes what is beyond its connections, and takes another one when there is room again', async () => {
  const server = createServer((_request, response) => response.end('reached'))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const settings = {
    allow: ['127.0.0.1'],
    headersTimeoutMs: 2000,
    idleTimeoutMs: 2000,
    maxBytes: 1_000_000,
    maxRedirects: 0,
  }
  await using outbound = createOutbound({ settings: () => settings })
  const proxy = await openProxy({
    outbound,
    admits: () => undefined,
    settings: { maxConnections: 2, maxTotalConnections: 10, idleTimeoutMs: 5000 },
  })
  const open = async (): Promise<Socket> => {
    const socket = connect(proxy.socket)
    await once(socket, 'connect')
    return socket
  }
  const get = `GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`
  const ask = async (socket: Socket): Promise<string> => {
    socket.on('error', () => undefined /* it is closed where there is no room */)
    socket.write(get)
    return text(socket).catch(() => '')
  }
  const [first, second] = [await open(), await open()]
  expect(await ask(await open())).toBe('')
  expect(await ask(first)).toMatch(/ 200 [^]*reached/)
  let said = ''
  while (said === '') said = await ask(await open())
  expect(said).toMatch(/ 200 [^]*reached/)
  second.destroy()
  await proxy.close()
  await new Promise((resolve) => server.close(resolve))
})

it('refuses a program what the programs of all agents have in use, and admits it again', async () => {
  const server = createServer()
  const held: Socket[] = []
  server.on('connection', (socket) => held.push(socket))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const settings = {
    allow: ['127.0.0.1'],
    headersTimeoutMs: 2000,
    idleTimeoutMs: 2000,
    maxBytes: 1_000_000,
    maxRedirects: 0,
  }
  await using outbound = createOutbound({ settings: () => settings })
  const limits = { maxConnections: 8, maxTotalConnections: 1, idleTimeoutMs: 5000 }
  const network = new ProgramNetwork(outbound, () => limits, new MetricRegistry())
  const [one, other] = [await network.open(() => undefined), await network.open(() => undefined)]
  const tunnel = async (proxy: ProgramProxy): Promise<readonly [Socket, string]> => {
    const socket = connect(proxy.socket)
    socket.write(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: x\r\n\r\n`)
    const [bytes] = (await once(socket, 'data')) as [Buffer]
    return [socket, bytes.toString()]
  }
  const [first, accepted] = await tunnel(one)
  expect(accepted).toContain(' 200 ')
  expect((await tunnel(other))[1]).toMatch(/ 429 [^]*outbound\.total_program_connections/)
  const closed = once(held[0]!.resume(), 'close')
  first.destroy()
  await closed
  let answer = ''
  while (!answer.includes(' 200 ')) answer = (await tunnel(other))[1]
  await Promise.all([one.close(), other.close()])
  await new Promise((resolve) => server.close(resolve))
})

it('the folder of a daemon that was killed is removed by the next start, and that of a running one stays', async () => {
  const { pid: gone } = spawnSync('true')
  const [stale, own] = [gone, process.pid].map((pid) => mkdtempSync(join(tmpdir(), `svc-network-${pid}-`)))
  await using host = await startHost({ plugins: [], memory: true })
  await host.app.greeted()
  expect([existsSync(stale!), existsSync(own!)]).toEqual([false, true])
  rmdirSync(own!)
})
