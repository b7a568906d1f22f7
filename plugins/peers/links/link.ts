import { randomUUID } from 'node:crypto'
import { enforced } from 'svc/internal'
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
import { parseJson, refuseOnLink } from './establish.ts'
import type { ProvenPeer } from './establish.ts'

export interface LinkDeps {
  readonly limits: {
    readonly pingMs: number
    readonly pingTimeoutMs: number
    /** Requests of the other side that are worked on at a time. */
    readonly maxPending: number
    readonly maxMessageBytes: number
  }
  /** Shared by all links of a peer, so that a new link is no new allowance. */
  readonly messages: Limiter
  readonly frames: Limiter
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
  #isPinging = false
  #isOver = false
  /** What the other side said before it ended the link. */
  #lastError: string | undefined

  constructor(peer: ProvenPeer, channel: FrameChannel, address: string, deps: LinkDeps) {
    this.peer = peer
    this.address = address
    this.#link = peer.link
    this.#channel = channel
    this.#deps = deps
    this.openedAt = this.lastSeenAt = Date.now()
  }

  get nodeId(): string {
    return this.peer.nodeId
  }
  get isInitiator(): boolean {
    return this.#link.role === 'initiator'
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
      return this.#lastError === undefined ? reason : new Error(this.#lastError, { cause: reason })
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
    const late = setTimeout(
      () => answered.reject(new PeerError(504, `no answer within ${Math.ceil(timeoutMs)} ms`)),
      timeoutMs,
    )
    const abort = (): void => answered.reject(signal?.reason as Error)
    signal?.addEventListener('abort', abort, { once: true })
    this.#waiting.set(id, answered)
    try {
      this.#send({ id, type: 'request', ...body } as Envelope)
      const response = await answered.promise
      if (response.method === 'error') throw new PeerError(response.code, response.message)
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
    if (response.method === 'error') this.#lastError = `the peer answered ${response.code}: ${response.message}`
  }

  #accept(request: Request, bytes: number): void {
    const { maxMessageBytes, maxPending } = this.#deps.limits
    const { id, method } = request
    if (bytes > maxMessageBytes)
      return this.#answerError(id, new PeerError(413, `A message has at most ${maxMessageBytes} bytes`))
    // It is worked on: one answer is enough.
    if (this.#pending.has(id)) return
    if (this.#pending.size >= maxPending)
      return this.#answerError(id, new PeerError(429, `${maxPending} requests are worked on; wait for their answers`))
    if (method !== 'ping' && !this.#deps.messages.take(this.nodeId, 1))
      return this.#answerError(id, new PeerError(429, 'Too many messages in this minute; send it again later'))
    this.#pending.add(id)
    void this.#work(request).finally(() => this.#pending.delete(id))
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
    if (this.#isPinging || Date.now() - this.lastSeenAt < pingMs / 2) return
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
