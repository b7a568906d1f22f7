import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { createOutbound } from '../../../core/net/outbound.ts'
import { openProxy } from '../../../core/net/proxy.ts'

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
  const proxy = await openProxy(outbound, () => undefined, { maxConnections: 2, idleTimeoutMs: 5000 })
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
