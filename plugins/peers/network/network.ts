import { foldAddress, limiterKey, messageOf } from 'svc/internal'
import type { AcceptedConnection, Connection, Logger, PluginContext, PortListener } from 'svc/sdk'
import type { Network as Settings } from '../config.ts'
import type { LinkedPeer } from '../contract.ts'
import type { Side } from '../handshake.ts'
import type { Identity } from '../identity.ts'
import { LinkRefusal } from '../mac.ts'
import { Replays } from '../replays.ts'
import { FrameChannel } from '../links/channel.ts'
import { initiate, respond } from '../links/establish.ts'
import type { EstablishDeps, ProvenPeer } from '../links/establish.ts'
import { LinkLost, PeerLink } from '../links/link.ts'
import type { Notification, NotificationBody } from '../links/envelope.ts'
import { AlreadyLinked, Dialer, readTarget } from './dialer.ts'
import type { DialerDeps, Target } from './dialer.ts'
import type { Inbound } from './inbound.ts'
import { createLimits } from './limits.ts'
import type { Limits } from './limits.ts'
import type { Pins } from './pins.ts'
import type { RefusalLog } from './refusals.ts'
import { LinkRegistry } from './registry.ts'
import type { Place } from './registry.ts'
import { RemoteAgents } from './remote-agents.ts'

export interface NetworkDeps extends Pick<PluginContext<never, {}, {}>, 'connect' | 'listen'> {
  readonly settings: Settings
  readonly secret: string
  readonly nodeId: string
  readonly nodeName: string
  readonly identity: Identity
  readonly pins: Pins
  readonly inbound: Inbound
  readonly refusals: RefusalLog
  readonly log: Logger
  /** Aborts when the node is to leave. */
  readonly signal: AbortSignal
  readonly mayDial: DialerDeps['mayDial']
  /** Whether no daemon on the database has seen the nonce of a handshake. */
  readonly takeNonce: EstablishDeps['takeNonce']
  /** A link was opened or ended, or the agents of its node are known. */
  readonly changed: (nodeId: string) => void
  readonly onConnected: (peer: LinkedPeer) => Promise<void>
  readonly onDisconnected: (peer: LinkedPeer, reason: string) => Promise<void>
  readonly counted: (what: 'frame_in' | 'frame_out' | 'refused') => void
  readonly background: (work: () => Promise<void>) => void
}

/** The links of this node: those that others open, and those it opens itself. */
export class PeerNetwork {
  readonly links: LinkRegistry
  readonly agents = new RemoteAgents()
  readonly dialers: readonly Dialer[]
  listener: PortListener | undefined
  readonly #deps: NetworkDeps
  readonly #side: Side
  readonly #replays = new Replays()
  readonly #limits: Limits
  /** The nodes that the configuration names, and those that were met at its addresses. */
  readonly #named = new Map<string, string>()

  constructor(deps: NetworkDeps) {
    const { settings, secret, nodeId } = deps
    this.#deps = deps
    this.#side = {
      secret,
      self: nodeId,
      now: Date.now,
      encryption: settings.allow_unencrypted ? 'offered' : 'required',
    }
    this.#limits = createLimits(settings)
    this.dialers = settings.peers.map(
      (text) =>
        new Dialer(readTarget(text), {
          dial: (target, opened) => this.#dial(target, opened),
          mayDial: deps.mayDial,
          minMs: settings.reconnect_min_ms,
          maxMs: settings.reconnect_max_ms,
          random: Math.random,
        }),
    )
    for (const { target } of this.dialers)
      if (target.nodeId !== undefined) this.#named.set(target.address, target.nodeId)
    this.links = new LinkRegistry({
      self: nodeId,
      max: settings.max_peers,
      reserved: Math.min(settings.max_peers, this.dialers.length),
      isNamed: (id) => this.#isNamed(id),
      maxExtra: settings.max_pending,
    })
  }

  /** Opens the port and begins to connect. Throws `Refusal` when it cannot listen. */
  async start(): Promise<void> {
    const { listen, settings, signal, background } = this.#deps
    signal.addEventListener('abort', () => this.#leave(), { once: true })
    if (settings.listen !== '')
      this.listener = await listen({
        key: 'network.listen',
        // A daemon of the first form of OFP may have a few more links.
        maxConnections: settings.max_peers * (settings.compatible_handshake ? 2 : 1) + settings.max_half_open,
        accept: (connection) => background(() => this.#accept(connection)),
      })
    for (const dialer of this.dialers) background(() => dialer.run(signal))
  }

  /** Tells every linked node. */
  announce(body: NotificationBody): void {
    for (const link of this.links.list()) if (!link.isCompatible) link.notify(body)
  }

  async #accept(connection: AcceptedConnection): Promise<void> {
    // The port stays open until the plugin is unloaded; a peer that lost its link calls again at once.
    if (this.#deps.signal.aborted) return void connection.destroy()
    const host = connection.remoteAddress ?? 'unknown'
    const address = `${host}:${connection.remotePort ?? 0}`
    const client = limiterKey(foldAddress(host))
    if (!this.#limits.connections.take(client, 1)) {
      connection.destroy()
      return await this.#refused(address, 'too many connections in this minute (network.connections_per_minute)')
    }
    const leave = this.#limits.halfOpen.enter(client)
    if (!leave) {
      connection.destroy()
      return await this.#refused(address, 'too many connections that have not proven anything')
    }
    const channel = new FrameChannel(connection, this.#deps.settings.max_queued_bytes)
    const place = this.links.place()
    const link = await respond(channel, this.#establishing(address, place))
      .then((peer) => this.#open(peer, channel, address))
      .catch((error: unknown) => this.#failed(channel, address, error))
      .finally(() => {
        place.leave()
        leave()
      })
    if (link) await this.#serve(link)
  }

  async #dial(target: Target, opened: (link: PeerLink) => void): Promise<Error> {
    const { connect, settings, signal } = this.#deps
    const { host, port, nodeId, address } = target
    if (nodeId !== undefined) this.#checkNode(nodeId)
    const connection: Connection = await connect({ host, port, signal })
    const channel = new FrameChannel(connection, settings.max_queued_bytes)
    const place = this.links.place()
    let link: PeerLink
    try {
      link = this.#open(await initiate(channel, this.#establishing(address, place, true), target), channel, address)
    } catch (error) {
      await this.#failed(channel, address, error)
      throw error
    } finally {
      place.leave()
    }
    opened(link)
    return await this.#serve(link)
  }

  #establishing(address: string, place: Place, isDialed = false): EstablishDeps {
    const { identity, inbound, nodeName, pins, settings, signal, takeNonce } = this.#deps
    return {
      side: this.#side,
      nodeName,
      identity,
      timeoutMs: settings.handshake_timeout_ms,
      signal,
      replays: this.#replays,
      takeNonce,
      checkNode: (nodeId) => this.#checkNode(nodeId),
      compatible: settings.compatible_handshake ? { agents: () => inbound.discover() } : undefined,
      admit: async (peer) => {
        if (isDialed) this.#named.set(address, peer.nodeId)
        place.take(peer.nodeId)
        await pins.check(peer, address, this.#isNamed(peer.nodeId))
      },
    }
  }
  #isNamed(nodeId: string): boolean {
    return [...this.#named.values()].includes(nodeId)
  }
  #checkNode(nodeId: string): void {
    const link = this.links.find(nodeId)
    if (link) throw new AlreadyLinked(link)
  }

  #open(peer: ProvenPeer, channel: FrameChannel, address: string): PeerLink {
    const { settings, inbound, counted, log, signal } = this.#deps
    // `#leave` has closed the links that were open: nobody would end this one.
    if (signal.aborted) throw new Error('this node is shutting down')
    const link = new PeerLink(peer, channel, address, {
      limits: {
        pingMs: settings.ping_interval_ms,
        pingTimeoutMs: settings.ping_timeout_ms,
        maxMessageBytes: settings.max_message_bytes,
      },
      ...this.#limits,
      answer: (request, from) => inbound.answer(request, from),
      notified: (notification, from) => this.#notified(notification, from),
      counted: (direction) => counted(direction === 'in' ? 'frame_in' : 'frame_out'),
      failed: (error) => log.error('a request of another node failed', error),
    })
    this.links.add(link)
    return link
  }

  async #serve(link: PeerLink): Promise<Error> {
    const { onConnected, onDisconnected, changed, background } = this.#deps
    if (!this.links.isMain(link)) return await link.serve()
    const peer = describe(link)
    const serving = link.serve()
    changed(link.nodeId)
    await onConnected(peer)
    background(() => this.#learn(link))
    const reason = await serving
    if (reason instanceof LinkRefusal && reason.code !== 409)
      await this.#refused(`${link.nodeId} at ${link.address}`, reason.message)
    if (!this.links.find(link.nodeId)) this.agents.forget(link.nodeId)
    changed(link.nodeId)
    await onDisconnected(peer, reason.message)
    return reason
  }

  async #learn(link: PeerLink): Promise<void> {
    const { agents } = link.peer
    try {
      if (agents) this.agents.set(link.nodeId, agents)
      else await this.agents.learn(link)
      this.#deps.changed(link.nodeId)
    } catch (error) {
      if (!(error instanceof LinkLost))
        this.#deps.log.warn(`cannot list the agents of node ${link.nodeId}: ${messageOf(error)}`)
    }
  }

  #notified(notification: Notification, link: PeerLink): void {
    if (notification.event === 'shutting_down') link.close(new Error('the peer is shutting down'))
    else {
      this.agents.note(link.nodeId, notification)
      this.#deps.changed(link.nodeId)
    }
  }

  async #failed(channel: FrameChannel, address: string, error: unknown): Promise<undefined> {
    const reason = error instanceof Error ? error : new Error(String(error))
    channel.destroy(reason)
    // Both sides began at once, and one of the links goes.
    if (reason instanceof AlreadyLinked || (reason instanceof LinkRefusal && reason.code === 409)) return
    if (!this.#deps.signal.aborted) await this.#refused(address, reason.message)
  }
  async #refused(address: string, reason: string): Promise<void> {
    this.#deps.counted('refused')
    await this.#deps.refusals.write(address, reason)
  }

  #leave(): void {
    this.announce({ event: 'shutting_down' })
    for (const link of this.links.list()) link.close(new Error('this node is shutting down'))
  }
}

export function describe({ nodeId, peer, address, encrypted }: PeerLink): LinkedPeer {
  return { nodeId, nodeName: peer.nodeName, address, encrypted, hasKey: peer.publicKey !== '' }
}
