import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { messageOf, monotonicClock, orAborted } from 'svc/internal'
import type { Broadcast, HopLimit } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { PluginContext } from 'svc/sdk'
import type { Agent, Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Turns } from '../chat/contract.ts'
import type { Cluster } from '../cluster/contract.ts'
import type { Screening } from '../screening/contract.ts'
import type { Network as Settings } from './config.ts'
import type { LinkedPeer } from './contract.ts'
import { Identity } from './identity.ts'
import type { NotificationBody } from './links/envelope.ts'
import { secretOf } from './mac.ts'
import { DialerClaims } from './network/dialer-claims.ts'
import { TokenBudget } from './network/token-budget.ts'
import { Inbound, toInfo } from './network/inbound.ts'
import { PeerNetwork } from './network/network.ts'
import { Pins } from './network/pins.ts'
import { RefusalLog } from './network/refusals.ts'
import { SharedLinks } from './network/shared-links.ts'
import { SHARED_WINDOW_MS } from './replays.ts'
import { AskedStore, DialerStore, NonceStore, PinStore } from './store.ts'
import type { PinRow } from './store.ts'

/** In the vault, and among the dialers: whoever has that row makes the key. */
const IDENTITY = 'identity'
/** Between two looks whether another daemon has made the key. */
const IDENTITY_RETRY_MS = 100

export interface RuntimeDeps extends Pick<
  PluginContext<never, {}, {}>,
  'connect' | 'db' | 'leaving' | 'listen' | 'log' | 'own' | 'vault'
> {
  readonly settings: Settings
  readonly agents: Agents
  readonly audit: Audit
  readonly broadcast: Broadcast
  readonly cluster: Cluster
  readonly turns: Turns
  readonly screening: Screening
  readonly background: (work: () => Promise<void>) => void
  readonly counted: (what: 'frame_in' | 'frame_out' | 'refused' | 'answered' | 'failed') => void
  readonly emit: (event: 'connected' | 'disconnected', peer: LinkedPeer, reason: string) => Promise<void>
  /** Tells the operator that networking does not work; `undefined`: it does. */
  readonly impaired: (reason: string | undefined) => void
}

/** The network of this node once it is started, or why it is not. */
export class Runtime {
  readonly settings: Settings
  readonly pins: Pins
  network: PeerNetwork | undefined
  /** The links of the other daemons on the database; `undefined` where no other daemon can be. */
  shared: SharedLinks | undefined
  identity: Identity | undefined
  /** Why there is no network although it is enabled. */
  problem: string | undefined
  readonly #deps: RuntimeDeps
  readonly #claims: DialerClaims | undefined
  #inbound: Inbound | undefined
  readonly #begun = Promise.withResolvers<void>()

  constructor(deps: RuntimeDeps) {
    this.#deps = deps
    this.settings = deps.settings
    const { max_known_peers: max, new_peers_per_hour: newPerHour } = deps.settings
    if (deps.broadcast.isShared) this.#claims = new DialerClaims(new DialerStore(deps.db), deps.cluster)
    this.pins = new Pins(new PinStore(deps.db, deps.log), deps.audit, { max, newPerHour })
  }

  get nodeId(): string | undefined {
    const { node_id: named } = this.settings
    return named ?? (this.identity && `svc-${this.identity.fingerprint.replaceAll('-', '').slice(0, 16)}`)
  }
  get hopLimit(): HopLimit {
    return { max: this.settings.max_hops, key: 'network.max_hops' }
  }
  get nodeName(): string {
    return this.settings.node_name ?? hostname()
  }

  /** Starts networking. A mistake in the configuration is reported and stops nothing else. */
  async start(): Promise<void> {
    const { log, impaired } = this.#deps
    try {
      await this.#start()
      this.problem = undefined
      impaired(undefined)
    } catch (error) {
      this.problem = messageOf(error)
      log.error(`networking is off: ${this.problem}`)
      impaired(`networking is off: ${this.problem}`)
    }
    this.#begun.resolve()
  }

  /** The same once it has begun: a turn that goes on after a crash may be faster. */
  async ready(signal: AbortSignal): Promise<PeerNetwork> {
    const { enabled, connect_wait_secs: seconds } = this.settings
    const ends = AbortSignal.any([signal, this.#deps.leaving, AbortSignal.timeout(seconds * 1000)])
    if (enabled) await orAborted(this.#begun.promise, ends).catch(() => signal.throwIfAborted())
    return this.require()
  }
  /** The network. Throws while there is none. */
  require(): PeerNetwork {
    if (this.network) return this.network
    if (!this.settings.enabled)
      throw new Refusal('not_found', 'Networking is off: write enabled = true under [network] into config.toml')
    throw new Refusal('service_unavailable', `Networking is off: ${this.problem ?? 'it has yet to begin'}`)
  }

  /**
   * A node that is linked or was, by its id or its name. A node gives itself its name, so the name counts only where no
   * other node has it and it is not the id of another, linked or not.
   */
  async resolve(idOrName: string): Promise<PinRow | undefined> {
    const known = await this.pins.find(idOrName)
    if (known || this.network?.dialers.some(({ target }) => target.nodeId === idOrName)) return known
    const named = (await this.pins.list()).filter(({ node_name: name }) => name === idOrName)
    return named.length === 1 ? named[0] : undefined
  }

  spawned(agent: Agent): void {
    this.#announce(agent, { event: 'agent_spawned', agent: toInfo(agent) })
  }
  killed(agent: Agent): void {
    this.#announce(agent, { event: 'agent_terminated', agent_id: agent.id })
  }
  #announce(agent: Agent, body: NotificationBody): void {
    if (!this.#inbound?.isShared(agent)) return
    this.network?.announce(body)
    this.shared?.announce(body)
  }

  /** Another daemon on the database ended: what it dialled is dialled here. */
  memberEnded(id: string): void {
    this.shared?.forget(id)
    for (const dialer of this.network?.dialers ?? []) dialer.hurry()
  }

  /** Forgets the key of a node and ends its link. Whether it was known. */
  async unpin(nodeId: string): Promise<boolean> {
    const found = await this.pins.remove(nodeId)
    this.network?.links.find(nodeId)?.close(new Error('an operator removed the key of the node'))
    this.shared?.unpinned(nodeId)
    for (const dialer of this.network?.dialers ?? []) dialer.hurry()
    return found
  }

  async #start(): Promise<void> {
    const { audit, background, broadcast, db, log, own, settings, turns, leaving } = this.#deps
    const secret = settings.shared_secret ?? ''
    if (secret === '')
      throw new Refusal('invalid_request', 'network.shared_secret is empty: write the same secret into all nodes')
    secretOf(secret)
    this.identity = await this.#readIdentity()
    const budget = new TokenBudget({
      store: new AskedStore(db),
      find: (id) => turns.find(id),
      max: settings.tokens_per_hour,
      now: Date.now,
    })
    const nonces = new NonceStore(db)
    const claims = this.#claims
    const inbound = new Inbound({
      ...this.#deps,
      budget,
      maxHops: this.hopLimit,
      maxAnswerBytes: settings.max_answer_bytes,
      share: settings.share,
      startedAt: monotonicClock.now(),
    })
    const network = new PeerNetwork({
      ...this.#deps,
      secret,
      nodeId: this.nodeId ?? '',
      nodeName: this.nodeName,
      identity: this.identity,
      pins: this.pins,
      inbound,
      refusals: new RefusalLog(audit, log, settings.audited_refusals_per_minute),
      signal: leaving,
      mayDial: claims && (({ address }) => claims.take(address)),
      takeNonce: async (nonce, sentAt) =>
        !broadcast.isShared || nonces.take(nonce, Math.max(Date.now(), sentAt) + SHARED_WINDOW_MS, Date.now()),
      changed: (nodeId) => this.shared?.tell(nodeId),
      onConnected: (peer) => this.#connected(peer),
      onDisconnected: (peer, reason) => this.#deps.emit('disconnected', peer, reason),
    })
    const { links, agents } = network
    if (broadcast.isShared) {
      const shared = new SharedLinks({
        broadcast,
        links,
        agents,
        announce: (body) => network.announce(body),
        background,
      })
      own('what other daemons say of their links', () => shared[Symbol.dispose]())
      this.shared = shared
    }
    await network.start()
    this.#inbound = inbound
    this.network = network
  }

  async #connected(peer: LinkedPeer): Promise<void> {
    const { nodeId, nodeName, address, encrypted, hasKey } = peer
    const how = `${encrypted ? 'encrypted' : 'not encrypted'}${hasKey ? '' : ', without a key of its own'}`
    await this.#deps.audit.write({
      event: 'wire_connect',
      details: `linked with node ${nodeId} (${nodeName}) at ${address}, ${how}`,
    })
    await this.#deps.emit('connected', peer, '')
  }

  /** Made by one of the daemons on the database: they are one node to others. */
  async #readIdentity(): Promise<Identity> {
    const { vault, leaving } = this.#deps
    for (;;) {
      const kept = await vault.read(IDENTITY)
      if (kept !== undefined) return Identity.read(kept)
      if (await this.#mayMakeIdentity()) break
      await delay(IDENTITY_RETRY_MS, undefined, { signal: leaving })
    }
    const identity = new Identity()
    await vault.write(IDENTITY, identity.write())
    return identity
  }
  /** Whoever may has looked once more: another one may have made it just before. */
  async #mayMakeIdentity(): Promise<boolean> {
    if (!this.#claims) return true
    return (await this.#claims.take(IDENTITY)) && (await this.#deps.vault.read(IDENTITY)) === undefined
  }
}
