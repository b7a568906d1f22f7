import { createHmac, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { FrameReader } from '../../../plugins/peers/frames.ts'
import type { Json } from '../../support/json.ts'
import { Node, SECRET } from './nodes.ts'
import { RawPeer } from './raw-peer.ts'

// The first form of OFP, spoken by a program that knows nothing else (API facts, appendix C).

const hmac = (key: string, data: string): string => createHmac('sha256', key).update(data).digest('hex')

class FirstForm {
  readonly socket: Socket
  readonly nonce: string = randomUUID()
  key: string | undefined
  /** What was sent last. */
  sent: Buffer = Buffer.alloc(0)
  readonly #frames: Buffer[] = []
  readonly #reader = new FrameReader(20_000_000)
  #wake = Promise.withResolvers<void>()
  #isOver = false

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', (bytes) => {
      this.#frames.push(...this.#reader.push(bytes))
      this.#wake.resolve()
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.#isOver = true
      this.#wake.resolve()
    })
    onTestFinished(() => void socket.destroy())
  }
  static async connect(port: number): Promise<FirstForm> {
    const socket = connect({ host: '127.0.0.1', port })
    await once(socket, 'connect')
    return new FirstForm(socket)
  }

  greeting(self: string, secret = SECRET) {
    return {
      node_id: self,
      node_name: `${self} of another maker`,
      protocol_version: 1,
      agents: [{ id: 'a1', name: 'poet', description: 'writes', tags: [], tools: [], state: 'Running' }],
      nonce: this.nonce,
      auth_hmac: hmac(secret, this.nonce + self),
    }
  }
  /** The answer to the handshake; the key of the link is known then. */
  async greet(self: string, more: object = {}): Promise<Json> {
    this.write({ id: '1', type: 'request', method: 'handshake', ...this.greeting(self), ...more })
    const ack = await this.next()
    if (ack?.method === 'handshake_ack') this.key = hmac(SECRET, this.nonce + ack.nonce)
    return ack
  }
  write(message: object): void {
    const body = Buffer.from(JSON.stringify(message))
    this.send(this.key === undefined ? body : Buffer.concat([body, Buffer.from(hmac(this.key, body.toString()))]))
  }
  send(content: Buffer): void {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(content.byteLength)
    this.sent = content
    this.socket.write(Buffer.concat([length, content]))
  }
  /** The next frame, checked; `undefined` when the connection has ended. */
  async next(): Promise<Json> {
    while (this.#frames.length === 0 && !this.#isOver) {
      await this.#wake.promise
      this.#wake = Promise.withResolvers()
    }
    const content = this.#frames.shift()?.toString()
    if (content === undefined || this.key === undefined) return content && JSON.parse(content)
    expect(content.slice(-64)).toBe(hmac(this.key, content.slice(0, -64)))
    return JSON.parse(content.slice(0, -64))
  }
}

let node: Node
let port: number
beforeAll(async () => {
  node = await Node.start('node', { compatible_handshake: true })
  port = await node.port()
  await node.spawn('scribe')
})
afterAll(() => node?.[Symbol.asyncDispose]())

const ask = (id: string, message: string) => ({
  id,
  type: 'request',
  method: 'agent_message',
  agent: 'scribe',
  message,
  sender: null,
})

describe('a daemon of the first form', () => {
  it('is answered in two messages, with agents; its next frame is a message and the next one to it the answer', async () => {
    const peer = await FirstForm.connect(port)
    const ack = await peer.greet('old')
    expect(ack).toMatchObject({ id: '1', type: 'response', node_id: 'node', node_name: "node's daemon" })
    expect(ack.auth_hmac).toBe(hmac(SECRET, `${ack.nonce}node`))
    expect([ack.protocol_version, ack.agents.map(({ name }: Json) => name)]).toEqual([1, ['assistant', 'scribe']])
    peer.write(ask('2', 'Hello'))
    expect(await peer.next()).toEqual({ id: '2', type: 'response', method: 'agent_response', text: 'Hello' })
    expect(await node.linked('old')).toMatchObject({ encrypted: false, fingerprint: '', agents: [{ name: 'poet' }] })
    await node.audited(/linked with node old .*, not encrypted, without a key of its own/)
    // It makes another link for another message, and keeps the first one.
    const second = await FirstForm.connect(port)
    await second.greet('old')
    second.write(ask('3', 'Again'))
    expect(await second.next()).toMatchObject({ id: '3', text: 'Again' })
    peer.write({ id: '4', type: 'request', method: 'ping' })
    expect(await peer.next()).toMatchObject({ id: '4', method: 'pong' })
    const answer = node.send('old', 'poet', 'A line')
    const request = await peer.next()
    expect(request).toMatchObject({ type: 'request', method: 'agent_message', agent: 'poet', message: 'A line' })
    peer.write({ id: request.id, type: 'response', method: 'agent_response', text: 'Roses are red' })
    expect((await answer).body.text).toBe('Roses are red')
  })

  it('is asked whether it is there when it has nothing to say', async () => {
    const peer = await FirstForm.connect(port)
    await peer.greet('quiet')
    const { id, method } = await peer.next()
    expect(method).toBe('ping')
    peer.write({ id, type: 'response', method: 'pong', uptime_secs: 1 })
    await node.linked('quiet')
  })

  it.each([
    ['another secret', { auth_hmac: hmac('another secret of thirty-two bytes', 'x') }, 403, /knows the secret/],
    ['the id of this daemon', { node_id: 'node' }, 403, /does not call itself/],
    ['another version', { protocol_version: 2 }, 1, /another version/],
    ['no nonce', { nonce: '' }, 400, /not the one that comes here/],
  ])('is refused with %s, in its own form', async (_, more, code, message) => {
    const peer = await FirstForm.connect(port)
    expect(await peer.greet('old', more)).toEqual({
      id: '1',
      type: 'response',
      method: 'error',
      code,
      message: expect.stringMatching(message),
    })
    expect(await peer.next()).toBeUndefined()
  })

  it('gets no link with the handshake or a frame of another link, nor with a frame that was sent before', async () => {
    const peer = await FirstForm.connect(port)
    await peer.greet('replayed')
    peer.write(ask('1', 'Once'))
    const frame = peer.sent
    await peer.next()
    const requests = node.model.requests.length
    const same = await FirstForm.connect(port)
    expect(await same.greet('replayed', peer.greeting('replayed'))).toMatchObject({ code: 403 })
    const other = await FirstForm.connect(port)
    await other.greet('thief')
    other.send(frame)
    expect(await other.next()).toMatchObject({ code: 403 })
    peer.send(frame)
    expect(await peer.next()).toMatchObject({ code: 403 })
    expect((await node.peers()).map(({ node_id: id }) => id)).not.toContain('thief')
    expect(node.model.requests).toHaveLength(requests)
  })

  it('never comes under the name of one that has a key', async () => {
    const keyed = await RawPeer.link(port, 'node', 'keyed')
    onTestFinished(() => void keyed.socket.destroy())
    await node.linked('keyed')
    const peer = await FirstForm.connect(port)
    await peer.greet('keyed')
    peer.write(ask('1', 'Hello'))
    expect(await peer.next()).toMatchObject({ code: 403, message: expect.stringMatching(/Node keyed has a key/) })
    expect(await node.linked('keyed')).toMatchObject({ encrypted: true })
  })
})

it('a daemon of the first form is called where the configuration says so', async () => {
  const server = createServer()
  onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const called = once(server, 'connection')
  const { port: at } = server.address() as AddressInfo
  await using caller = await Node.start('caller', { peers: [`compatible://old@127.0.0.1:${at}`] })
  const peer = new FirstForm(((await called) as [Socket])[0])
  const { id, nonce, agents, ...greeting } = await peer.next()
  expect(greeting).toMatchObject({ type: 'request', method: 'handshake', node_id: 'caller' })
  expect([greeting.auth_hmac, agents]).toEqual([hmac(SECRET, `${nonce}caller`), []])
  peer.write({ id, type: 'response', method: 'handshake_ack', ...peer.greeting('old') })
  peer.key = hmac(SECRET, nonce + peer.nonce)
  const ping = await peer.next()
  expect(ping.method).toBe('ping')
  peer.write({ id: ping.id, type: 'response', method: 'pong', uptime_secs: 1 })
  await caller.linked('old')
})

it('is off by default, and says so', async () => {
  await using strict = await Node.start('strict')
  const peer = await FirstForm.connect(await strict.port())
  expect(await peer.greet('old')).toMatchObject({
    id: '1',
    method: 'error',
    code: 403,
    message: expect.stringMatching(/network\.compatible_handshake/),
  })
  await strict.audited('network.compatible_handshake')
})

it('audits a link that is not encrypted', async () => {
  await using open = await Node.start('open', { allow_unencrypted: true })
  const peer = await RawPeer.link(await open.port(), 'open', 'plain', { encryption: 'off' })
  expect(await open.linked('plain')).toMatchObject({ encrypted: false, authenticated: true })
  await open.audited(/linked with node plain .*, not encrypted$/)
  peer.socket.destroy()
})
