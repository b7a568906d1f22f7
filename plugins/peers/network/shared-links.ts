import * as v from 'valibot'
import type { Broadcast } from 'svc/internal'
import { Notification, PeerError, Request, Response } from '../links/envelope.ts'
import type { NotificationBody } from '../links/envelope.ts'
import { LinkLost, NoAnswer } from '../links/link.ts'
import type { PeerLink } from '../links/link.ts'
import type { LinkRegistry } from './registry.ts'
import type { RemoteAgents } from './remote-agents.ts'

const TOPIC = 'peers.links'
/** A message between daemons may be lost: a question without an answer is sent again. The other node makes one turn of it. */
const RESEND_MS = 5_000

/** A link that another daemon on the database has, as it is shown. */
const SharedLink = v.object({
  node_id: v.string(),
  node_name: v.string(),
  address: v.string(),
  encrypted: v.boolean(),
  opened_at: v.number(),
  last_seen: v.number(),
  agents: v.array(v.object({ id: v.string(), name: v.string(), description: v.string(), state: v.string() })),
})
export type SharedLink = v.InferOutput<typeof SharedLink>

const Message = v.variant('type', [
  v.object({ type: v.literal('who') }),
  v.object({ type: v.literal('linked'), link: SharedLink }),
  v.object({ type: v.literal('unlinked'), node_id: v.string() }),
  v.object({ type: v.literal('unpinned'), node_id: v.string() }),
  v.object({ type: v.literal('notify'), notification: Notification }),
  v.object({ type: v.literal('ask'), node_id: v.string(), request: Request, timeout_ms: v.number() }),
  v.object({ type: v.literal('answer'), id: v.string(), response: Response }),
  v.object({ type: v.literal('no_answer'), id: v.string(), reason: v.picklist(['lost', 'late']) }),
])
type Message = v.InferOutput<typeof Message>
type Ask = Extract<Message, { readonly type: 'ask' }>

export interface SharedLinksDeps {
  readonly broadcast: Broadcast
  readonly links: LinkRegistry
  readonly agents: RemoteAgents
  /** Tells every node that is linked here. */
  readonly announce: (body: NotificationBody) => void
  readonly background: (work: () => Promise<void>) => void
}
/** What a question needs of a link, be it here or at another daemon. */
export type Askable = Pick<PeerLink, 'request'>
interface Waiting {
  readonly owner: string
  readonly answered: PromiseWithResolvers<Response>
}

/** Links that the daemons on a database have with other nodes: each is open at one of them, and all may ask over it. */
export class SharedLinks implements Disposable {
  readonly #deps: SharedLinksDeps
  readonly #elsewhere = new Map<string, Map<string, SharedLink>>()
  readonly #waiting = new Map<string, Waiting>()
  /** Questions of other daemons that are being asked here. */
  readonly #asked = new Set<string>()
  readonly #arrivals = new Set<() => void>()
  readonly #subscription: Disposable

  constructor(deps: SharedLinksDeps) {
    this.#deps = deps
    this.#subscription = deps.broadcast.on(TOPIC, {
      heard: (data, from) => this.#heard(data, from),
      missed: () => this.#begin(),
    })
    this.#begin()
  }
  [Symbol.dispose](): void {
    this.#subscription[Symbol.dispose]()
  }

  /** Tells the others whether this daemon is linked with the node. */
  tell(nodeId: string): void {
    const link = this.#deps.links.find(nodeId)
    if (link) this.#send({ type: 'linked', link: { ...describe(link), agents: [...this.#deps.agents.of(nodeId)] } })
    else this.#send({ type: 'unlinked', node_id: nodeId })
  }
  /** Every node that is linked with another daemon is told. */
  announce(body: NotificationBody): void {
    const notification = v.parse(Notification, { id: crypto.randomUUID(), type: 'notification', ...body })
    this.#send({ type: 'notify', notification })
  }
  /** The others end their links with the node. */
  unpinned(nodeId: string): void {
    this.#send({ type: 'unpinned', node_id: nodeId })
  }
  /** What another daemon has died with. */
  forget(daemonId: string): void {
    this.#elsewhere.delete(daemonId)
    for (const { owner, answered } of this.#waiting.values())
      if (owner === daemonId) answered.reject(new LinkLost('the daemon that has the link is gone'))
  }

  find(nodeId: string): SharedLink | undefined {
    return this.#ownerOf(nodeId)?.[1].get(nodeId)
  }
  /** The link to a node, at another daemon. */
  at(nodeId: string): Askable | undefined {
    const [owner] = this.#ownerOf(nodeId) ?? []
    if (owner === undefined) return undefined
    return {
      request: async (body, { id = crypto.randomUUID(), signal, timeoutMs }) => {
        const request = v.parse(Request, { id, type: 'request', ...body })
        return await this.#ask(owner, { type: 'ask', node_id: nodeId, request, timeout_ms: timeoutMs }, signal)
      },
    }
  }
  /** Settles when another daemon is linked with the node. Rejects with the reason of the signal. */
  async arrival(nodeId: string, signal: AbortSignal): Promise<Askable> {
    for (;;) {
      signal.throwIfAborted()
      const found = this.at(nodeId)
      if (found) return found
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#arrivals.add(resolve)
      signal.addEventListener('abort', () => resolve(), { once: true })
      await promise
      this.#arrivals.delete(resolve)
    }
  }

  #begin(): void {
    this.#elsewhere.clear()
    this.#send({ type: 'who' })
    this.#tellAll()
  }
  #tellAll(): void {
    for (const { nodeId } of this.#deps.links.list()) this.tell(nodeId)
  }
  #ownerOf(nodeId: string): readonly [string, ReadonlyMap<string, SharedLink>] | undefined {
    for (const entry of this.#elsewhere) if (entry[1].has(nodeId)) return entry
    return undefined
  }

  async #ask(owner: string, ask: Ask, signal: AbortSignal | undefined): Promise<Response> {
    const { id } = ask.request
    const answered = Promise.withResolvers<Response>()
    const late = setTimeout(() => answered.reject(new NoAnswer('no answer came in time')), ask.timeout_ms)
    const abort = (): void => answered.reject(signal?.reason as Error)
    signal?.addEventListener('abort', abort, { once: true })
    this.#waiting.set(id, { owner, answered })
    this.#send(ask, owner)
    const resend = setInterval(() => this.#send(ask, owner), RESEND_MS)
    try {
      const response = await answered.promise
      if (response.method === 'error') throw new PeerError(response.code, response.message)
      return response
    } finally {
      clearTimeout(late)
      clearInterval(resend)
      signal?.removeEventListener('abort', abort)
      this.#waiting.delete(id)
    }
  }

  #heard(data: unknown, from: string): void {
    const parsed = v.safeParse(Message, data)
    // Another build may say what is not known here.
    if (!parsed.success) return
    const message = parsed.output
    if (message.type === 'who') this.#tellAll()
    else if (message.type === 'linked') this.#arrived(message.link, from)
    else if (message.type === 'unlinked') this.#elsewhere.get(from)?.delete(message.node_id)
    else if (message.type === 'unpinned') this.#close(message.node_id)
    else if (message.type === 'notify') this.#deps.announce(message.notification)
    else if (message.type === 'ask') this.#deps.background(() => this.#answer(message, from))
    else if (message.type === 'answer') this.#waiting.get(message.id)?.answered.resolve(message.response)
    else this.#waiting.get(message.id)?.answered.reject(failureOf(message.reason))
  }
  #arrived(link: SharedLink, from: string): void {
    const links = this.#elsewhere.get(from) ?? new Map<string, SharedLink>()
    this.#elsewhere.set(from, links.set(link.node_id, link))
    for (const arrived of this.#arrivals) arrived()
  }
  #close(nodeId: string): void {
    this.#deps.links.find(nodeId)?.close(new Error('an operator removed the key of the node'))
  }

  /** Asks the node for another daemon. */
  async #answer({ node_id: nodeId, request, timeout_ms: timeoutMs }: Ask, from: string): Promise<void> {
    const { id, type: _, ...body } = request
    const key = `${from} ${id}`
    if (this.#asked.has(key)) return
    this.#asked.add(key)
    try {
      const link = this.#deps.links.find(nodeId)
      if (!link) throw new LinkLost('the link has ended')
      this.#send({ type: 'answer', id, response: await link.request(body, { id, timeoutMs }) }, from)
    } catch (error) {
      if (error instanceof PeerError) this.#send({ type: 'answer', id, response: errorOf(id, error) }, from)
      else this.#send({ type: 'no_answer', id, reason: error instanceof NoAnswer ? 'late' : 'lost' }, from)
    } finally {
      this.#asked.delete(key)
    }
  }

  #send(message: Message, to?: string): void {
    this.#deps.broadcast.send(TOPIC, message, to)
  }
}

/** A link without the agents of its node. */
export function describe(link: PeerLink): Omit<SharedLink, 'agents'> {
  return {
    node_id: link.nodeId,
    node_name: link.peer.nodeName,
    address: link.address,
    encrypted: link.encrypted,
    opened_at: link.openedAt,
    last_seen: link.lastSeenAt,
  }
}
const errorOf = (id: string, { code, message }: PeerError): Response => ({
  id,
  type: 'response',
  method: 'error',
  code,
  message,
})
const failureOf = (reason: 'lost' | 'late'): Error =>
  reason === 'late' ? new NoAnswer('no answer came in time') : new LinkLost('the link ended before the answer came')
