import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { FrameProxy } from '../../support/frame-proxy.ts'
import { eventually, Node } from './nodes.ts'
import { RawPeer } from './raw-peer.ts'

/** `SVC_RESTARTS=50` is the long form. */
const RESTARTS = Number(process.env['SVC_RESTARTS'] ?? 4)

it('two daemons that call each other find back however often they are restarted, and leave nothing open', async () => {
  await using forth = await FrameProxy.start()
  await using back = await FrameProxy.start()
  await using one = await Node.start('one', { peers: [`127.0.0.1:${forth.port}`] })
  await using two = await Node.start('two', { peers: [`one@127.0.0.1:${back.port}`] })
  const nodes = [one, two]
  const aim = async (): Promise<void> => {
    forth.target = await two.port()
    back.target = await one.port()
    await Promise.all([one.linked('two'), two.linked('one')])
    await eventually(async () =>
      expect([(await one.status()).connected_peers, (await two.status()).connected_peers]).toEqual([1, 1]),
    )
  }
  await aim()
  await Promise.all(nodes.map((node) => node.spawn('scribe')))
  const sockets: number[] = []
  for (let at = 0; at < RESTARTS; at++) {
    const node = nodes[at % 2]
    await node?.stop()
    await node?.start()
    await aim()
    const key = `message-${at}`
    for (const repeated of [false, true]) {
      expect((await one.send('two', 'scribe', `Forth ${at}`, key)).body, String(repeated)).toMatchObject({
        text: `Forth ${at}`,
      })
      expect((await two.send('one', 'scribe', `Back ${at}`, key)).body.text).toBe(`Back ${at}`)
    }
    expect([two.asked(`Forth ${at}`), one.asked(`Back ${at}`)]).toEqual([1, 1])
    await eventually(() => {
      const open = process.getActiveResourcesInfo().filter((name) => name.startsWith('TCP')).length
      sockets[at] = open
      expect(open).toBeLessThanOrEqual(sockets[at - 2] ?? Number.POSITIVE_INFINITY)
    })
  }
})

it('a daemon that stops opens no link that was in its handshake', async () => {
  await using node = await Node.start('node')
  const { log } = node.host
  const port = await node.port()
  const late = await RawPeer.connect(port)
  late.channel.sendJson({ type: 'who', version: 1 })
  await late.plain()
  const witness = await RawPeer.link(port, 'node', 'witness')
  await node.linked('witness')
  const stopped = node.stop()
  for (let event: unknown; event !== 'shutting_down';) ({ event } = await witness.next())
  // A peer that calls again as soon as its link has ended gets this far.
  await expect(late.open('node', 'late')).rejects.toThrow()
  await stopped
  expect(log.filter((line) => line.includes('did not unload cleanly'))).toEqual([])
})

it('a daemon that stops does not wait for a handshake with a silent peer, called or calling', async () => {
  await using server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const called = once(server, 'connection')
  const { port } = server.address() as AddressInfo
  await using node = await Node.start('node', { peers: [`127.0.0.1:${port}`] })
  const { log } = node.host
  const calling = await RawPeer.connect(await node.port())
  calling.channel.sendJson({ type: 'who', version: 1 })
  await calling.plain()
  const [socket] = await called
  socket.resume()
  await node.stop()
  expect(log.filter((line) => line.includes('did not unload cleanly'))).toEqual([])
})
