import { randomUUID } from 'node:crypto'
import { enforced, monotonicClock } from 'svc/internal'
import type { Limiter } from 'svc/internal'
import type { Link } from '../handshake.ts'
import { LinkRefusal } from '../mac.ts'
import type { FrameChannel } from './channel.ts'
import { PeerError, readEnvelope } from './envelope.ts'
import type {
  Envelope,
  Notification,
  NotificationBody,
  Request,
  RequestBody,
  Response,
  ResponseBody,
} from './envelope.ts'
import { plainText } from '../plain-text.ts'
import type { PendingRequests } from '../network/pending.ts'
import { parseJson, refuseOnLink } from './establish.ts'
import type { ProvenPeer } from './establish.ts'

export interface LinkDeps {
  readonly limits: {
    readonly pingMs: number
    readonly pingTimeoutMs: number
    readonly maxMessageBytes: number
  }
  /** Shared by all links of a peer, so that a new link is no new allowance. */
  readonly messages: Limiter
  readonly frames: Limiter
  readonly bytes: Limiter
  readonly pending: PendingRequests
  /** Answers a request. Throws `PeerError`; anything else is a failure of this node. */
  readonly answer: (request: Request, link: PeerLink) => Promise<ResponseBody>
  readonly notified: (notification: Notification, link: PeerLink) => void
  readonly counted: (direction: 'in' | 'out') => void
  readonly failed: (error: unknown) => void
}
/** The link ended before the answer came: the same request may be made again. */
export class LinkLost extends Error {
  override readonly name = 'LinkLost'
}
/** The other side is linked, and did not answer in time. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'
}
/** The other side has a newer link to a node of this name, which may be another daemon with the same key. */
export class LinkReplaced extends Error {
  override readonly name = 'LinkReplaced'
}
interface Waiting {
  readonly resolve: (response: Response) => void
  readonly reject: (error: Error) => void
}

/** An open link: requests and their answers in both directions. */
export class PeerLink {
  readonly peer: ProvenPeer
  /** Where the other side is. */
  readonly address: string
  readonly openedAt: number
  lastSeenAt: number
  readonly #deps: LinkDeps
  readonly #channel: FrameChannel
  readonly #link: Link
  readonly #waiting = new Map<string, Waiting>()
  /** Requests that are worked on. */
  readonly #pending = new Set<string>()
  readonly #openedAt = monotonicClock.now()
  /** The clock of the day may be set while the link is open. */
  #heardAt = this.#openedAt
  #isPinging = false
  #isOver = false
  /** What the other side said before it ended the link. */
  #lastError: Error | undefined

  constructor(peer: ProvenPeer, channel: FrameChannel, address: string, deps: LinkDeps) {
    this.peer = peer
    this.address = address
    this.#link = peer.link
    this.#channel = channel
    this.#deps = deps
    this.openedAt = this.lastSeenAt = Date.now()
  }

  get ageMs(): number {
    return monotonicClock.now() - this.#openedAt
  }
  get nodeId(): string {
    return this.peer.nodeId
  }
  get isInitiator(): boolean {
    return this.#link.role === 'initiator'
  }
  /** It has the form of OFP that knows no key: its other side may read nothing but the answer it waits for. */
  get isCompatible(): boolean {
    return this.peer.publicKey === ''
  }
  get encrypted(): boolean {
    return this.#link.encrypted
  }
  /** Settles with the reason. */
  get ended(): Promise<Error> {
    return this.#channel.ended
  }

  /** Reads until the link ends. */
  async serve(): Promise<Error> {
    const pings = setInterval(() => void this.#checkAlive(), this.#deps.limits.pingMs)
    try {
      for (;;) this.#receive(await this.#channel.next())
    } catch (error) {
      const reason = error instanceof Error ? error : new Error(String(error))
      if (reason instanceof LinkRefusal) this.refuse(reason)
      this.#channel.destroy(reason)
      return this.#lastError ?? reason
    } finally {
      clearInterval(pings)
      this.#isOver = true
      for (const { reject } of this.#waiting.values()) reject(new LinkLost('the link ended before the answer came'))
      this.#waiting.clear()
    }
  }

  /** Asks the other side. Rejects with `PeerError` for an error, and with `LinkLost` when the link ends before. */
  async request(
    body: RequestBody,
    {
      id = randomUUID(),
      signal,
      timeoutMs,
    }: { readonly id?: string; readonly signal?: AbortSignal; readonly timeoutMs: number },
  ): Promise<Response> {
    signal?.throwIfAborted()
    if (this.#isOver) throw new LinkLost('the link has ended')
    const answered = Promise.withResolvers<Response>()
    const late = setTimeout(() => answered.reject(new NoAnswer('no answer came in time')), timeoutMs)
    const abort = (): void => answered.reject(signal?.reason as Error)
    signal?.addEventListener('abort', abort, { once: true })
    this.#waiting.set(id, answered)
    try {
      this.#send({ id, type: 'request', ...body } as Envelope)
      const response = await answered.promise
      if (response.method === 'error') throw new PeerError(response.code, plainText(response.message, 1000))
      return response
    } finally {
      clearTimeout(late)
      signal?.removeEventListener('abort', abort)
      this.#waiting.delete(id)
    }
  }

  notify(body: NotificationBody): void {
    // What a slow reader misses it can ask for.
    if (this.#channel.queuedBytes > MAX_QUEUED_NOTIFICATIONS) return
    this.#send({ id: randomUUID(), type: 'notification', ...body } as Envelope)
  }

  /** What was sent before still goes out. */
  close(reason: Error): void {
    this.#channel.close(reason)
  }

  #send(envelope: Envelope): void {
    this.#channel.send(this.#link.out.seal(Buffer.from(JSON.stringify(envelope))))
    this.#deps.counted('out')
  }

  #receive(content: Buffer): void {
    const body = this.#link.in.open(content)
    this.lastSeenAt = Date.now()
    this.#heardAt = monotonicClock.now()
    if (!this.#deps.bytes.take(this.nodeId, content.byteLength))
      throw new LinkRefusal(429, 'The peer sends too many bytes (network.bytes_per_minute)')
    this.#deps.counted('in')
    const envelope = readEnvelope(parseJson(body))
    const response = 'type' in envelope && envelope.type === 'response' ? envelope : undefined
    const waiting = response && this.#waiting.get(response.id)
    if (response && waiting) return waiting.resolve(response)
    if (!this.#deps.frames.take(this.nodeId, 1)) throw new LinkRefusal(429, 'The peer sends too many frames')
    // The answer to a question that nobody waits for any more, or why the link ends.
    if (response) return this.#note(response)
    if ('problem' in envelope) return this.#answerError(envelope.id, envelope.problem)
    if (envelope.type === 'notification') return this.#deps.notified(envelope, this)
    if (envelope.type === 'request') this.#accept(envelope, body.byteLength)
  }

  #note(response: Response): void {
    if (response.method !== 'error') return
    const text = `the peer answered ${response.code}: ${plainText(response.message, 1000)}`
    this.#lastError = response.code === 409 ? new LinkReplaced(text) : new Error(text)
  }

  #accept(request: Request, bytes: number): void {
    const { limits, pending, messages } = this.#deps
    const { id, method } = request
    if (bytes > limits.maxMessageBytes)
      return this.#answerError(id, new PeerError(413, `A message has at most ${limits.maxMessageBytes} bytes`))
    // It is worked on: one answer is enough.
    if (this.#pending.has(id)) return
    if (!pending.enter(this.nodeId, id))
      return this.#answerError(id, new PeerError(429, `${pending.max} requests are worked on; wait for their answers`))
    if (method !== 'ping' && !messages.take(this.nodeId, 1)) {
      pending.leave(this.nodeId, id)
      return this.#answerError(id, new PeerError(429, 'Too many messages in this minute; send it again later'))
    }
    this.#pending.add(id)
    void this.#work(request).finally(() => {
      this.#pending.delete(id)
      pending.leave(this.nodeId, id)
    })
  }

  async #work(request: Request): Promise<void> {
    try {
      const body = await this.#deps.answer(request, this)
      this.#send({ id: request.id, type: 'response', ...body } as Envelope)
    } catch (error) {
      if (!(error instanceof PeerError)) this.#deps.failed(error)
      this.#answerError(request.id, error instanceof PeerError ? error : new PeerError(500, 'The request failed here'))
    }
  }
  #answerError(id: string, { code, message }: PeerError): void {
    this.#send({ id, type: 'response', method: 'error', code, message })
  }

  /** Ends the link and says why. */
  refuse(reason: LinkRefusal): void {
    if (reason.code === 403) enforced('ofp_hmac_auth')
    refuseOnLink(this.#channel, this.#link, reason)
  }

  async #checkAlive(): Promise<void> {
    const { pingMs, pingTimeoutMs } = this.#deps.limits
    // A caller of that form takes the next frame for its answer.
    if (this.isCompatible && this.#pending.size > 0) return
    if (this.#isPinging || monotonicClock.now() - this.#heardAt < pingMs / 2) return
    this.#isPinging = true
    try {
      await this.request({ method: 'ping' }, { timeoutMs: pingTimeoutMs })
    } catch (error) {
      if (error instanceof LinkLost) return
      this.#channel.destroy(new LinkRefusal(408, `The peer does not answer a ping within ${pingTimeoutMs} ms`))
    } finally {
      this.#isPinging = false
    }
  }
}
const MAX_QUEUED_NOTIFICATIONS = 1_048_576
