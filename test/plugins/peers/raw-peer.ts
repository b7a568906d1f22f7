import { once } from 'node:events'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { call } from '../../../plugins/peers/handshake.ts'
import type { Link, Side } from '../../../plugins/peers/handshake.ts'
import { Identity } from '../../../plugins/peers/identity.ts'
import { FrameChannel } from '../../../plugins/peers/links/channel.ts'
import type { Json } from '../../support/json.ts'

export const SECRET = 'the secret that both of these nodes know'

type LinkOptions = Partial<Side> & { readonly identity?: Identity }

/** A node of the test that says what it likes. */
export class RawPeer {
  readonly socket: Socket
  readonly channel: FrameChannel
  link: Link | undefined
  private constructor(socket: Socket) {
    this.socket = socket
    this.channel = new FrameChannel(socket, 1_000_000_000)
  }

  /** A connection on which nothing was said. */
  static async connect(port: number): Promise<RawPeer> {
    const socket = connect({ host: '127.0.0.1', port })
    const peer = new RawPeer(socket)
    await once(socket, 'connect')
    return peer
  }
  /** A link with the node. */
  static async link(port: number, to: string, self: string, options: LinkOptions = {}): Promise<RawPeer> {
    const peer = await RawPeer.connect(port)
    await peer.open(to, self, options)
    return peer
  }
  /** Makes a link of the connection. */
  async open(to: string, self: string, { identity = new Identity(), ...side }: LinkOptions = {}): Promise<void> {
    const calling = call({ secret: SECRET, self, now: Date.now, encryption: 'required', ...side }, to)
    this.channel.sendJson(calling.hello)
    const { proof, link } = calling.accept(await this.plain())
    this.channel.sendJson(proof)
    this.link = link
    this.channel.send(link.out.seal(Buffer.from(JSON.stringify(identity.prove(link, self)))))
    await this.next()
    this.channel.raise(20_000_000)
  }

  /** The next frame before the link is open. */
  async plain(): Promise<Json> {
    return JSON.parse((await this.channel.next()).toString())
  }
  async next(): Promise<Json> {
    if (!this.link) throw new Error('there is no link')
    return JSON.parse(this.link.in.open(await this.channel.next()).toString())
  }
  send(message: object): void {
    if (!this.link) throw new Error('there is no link')
    this.channel.send(this.link.out.seal(Buffer.from(JSON.stringify(message))))
  }
  /** The answer to a request; what comes before it is passed over. */
  async ask(request: { readonly id: string; readonly [key: string]: unknown }): Promise<Json> {
    this.send({ type: 'request', ...request })
    for (;;) {
      const message = await this.next()
      if (message.id === request.id) return message
    }
  }
  /** Settles when the node has ended the connection, with the last thing it said; its pings are passed over. */
  async ended(): Promise<Json> {
    let last: Json
    try {
      for (;;) {
        const said = this.link ? await this.next() : await this.plain()
        if (said.method !== 'ping') last = said
      }
    } catch {
      return last
    }
  }
}
