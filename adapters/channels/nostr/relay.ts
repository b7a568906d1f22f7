import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { endOf, JsonSocket, pause, within } from 'svc/channels'
import type { ChannelLink, ConnectionEnd, FrameWork } from 'svc/channels'
import type { NostrConfig } from './config.ts'
import { isDuplicate, toFailure, wantsAuth } from './errors.ts'
import type { Identity } from './identity.ts'
import { Event, Frame, KIND } from './wire.ts'
import type { Filter } from './wire.ts'

const ANSWER_MS = 15_000
const OPEN_MS = 10_000
const PING_MS = 30_000
const MAX_FRAME_BYTES = 1_048_576
const NORMAL = 1000
/** Stored events of one request; a relay that sends more than it was asked for is not read further. */
const MAX_STORED = 1000

type Link = ChannelLink<NostrConfig>
type Receive = (event: Event) => Promise<void>

interface Request {
  readonly stored: Event[]
  readonly complete: PromiseWithResolvers<void>
  /** Gets what is new. Absent where only stored events are asked for. */
  readonly receive: Receive | undefined
  isComplete: boolean
}

/** The words of a relay that refuses what was asked for. */
class RelayRefusal extends Error {}

/** A connection to one relay (NIP-01), which proves who it is when the relay asks (NIP-42). */
export class Relay {
  readonly url: string
  readonly host: string
  /** Settles when the connection has ended and no work of its events runs. Never rejects. */
  readonly ended: Promise<ConnectionEnd>
  readonly #link: Link
  readonly #identity: Identity
  readonly #socket: JsonSocket
  readonly #isOwn: boolean
  readonly #requests = new Map<string, Request>()
  readonly #answers = new Map<string, PromiseWithResolvers<void>>()
  readonly #lost: Promise<never>
  #challenge: string | undefined
  #authenticated: Promise<void> | undefined
  #lastHeard: number
  #next = 1

  /** `isOwn`: the operator names the relay, and not somebody who is written to. */
  static async open(link: Link, identity: Identity, url: string, isOwn: boolean): Promise<Relay> {
    const raw = await link.webSocket(url, { signal: link.signal, maxBytes: MAX_FRAME_BYTES, timeoutMs: OPEN_MS })
    return new Relay(link, identity, { url, isOwn, raw })
  }

  private constructor(
    link: Link,
    identity: Identity,
    { url, isOwn, raw }: { url: string; isOwn: boolean; raw: Awaited<ReturnType<Link['webSocket']>> },
  ) {
    this.#link = link
    this.#identity = identity
    this.url = url
    this.host = new URL(url).host
    this.#isOwn = isOwn
    this.#lastHeard = link.now()
    this.#socket = new JsonSocket({ heard: () => this.#heard() }, raw, (frame) => this.#read(frame))
    this.ended = this.#socket.ended.then(({ failure, code }) =>
      failure === undefined
        ? { retry: 'later', reason: `the relay ${this.host} closed the connection with ${code}` }
        : endOf(failure),
    )
    // Not `ended`, which waits for the work of events, and that may wait for an answer.
    this.#lost = raw.closed.then(({ code }) => {
      const message = `the relay ${this.host} closed the connection with ${code}`
      throw new UpstreamFailure('nostr', message, { reason: 'network', retry: 'later' })
    })
    // Told by `ended` when nothing waits.
    this.#lost.catch(() => undefined)
    void this.#keepAlive()
  }

  async close(): Promise<void> {
    await this.#socket.close(NORMAL)
  }

  /** The stored events that match, the newest first on most relays. */
  async query(filter: Filter): Promise<readonly Event[]> {
    const [id, events] = await this.#ask(filter, undefined)
    this.#requests.delete(id)
    await this.#socket.send(['CLOSE', id])
    return events
  }

  /** The same; `receive` gets each event that comes later, one after another. */
  async subscribe(filter: Filter, receive: Receive): Promise<readonly Event[]> {
    const [, events] = await this.#ask(filter, receive)
    return events
  }

  /** Settles when the relay has the event. */
  async publish(event: Event): Promise<void> {
    await this.#withAuth(() => this.#send('EVENT', event))
  }

  /** Settles when the relay knows the bot, where it has asked who it is. */
  async authenticate(): Promise<void> {
    if (this.#challenge !== undefined) await this.#prove(this.#challenge)
  }

  #heard(): void {
    this.#lastHeard = this.#link.now()
    this.#link.heard()
  }

  /** Others may be heard while this one is dead. */
  async #keepAlive(): Promise<void> {
    const controller = new AbortController()
    void this.ended.then(() => controller.abort())
    while (await pause(this.#link, PING_MS, controller.signal)) {
      if (this.#link.now() - this.#lastHeard > 3 * PING_MS) this.#socket.terminate()
      else this.#socket.ping()
    }
  }

  #ask(filter: Filter, receive: Receive | undefined): Promise<readonly [string, readonly Event[]]> {
    return this.#withAuth(async () => {
      const id = `svc-${this.#next++}`
      const request: Request = { stored: [], complete: Promise.withResolvers<void>(), receive, isComplete: false }
      this.#requests.set(id, request)
      try {
        await this.#socket.send(['REQ', id, filter])
        await this.#answered(request.complete.promise)
        return [id, request.stored] as const
      } catch (error) {
        this.#requests.delete(id)
        throw error
      }
    })
  }

  async #send(type: 'EVENT' | 'AUTH', event: Event): Promise<void> {
    const answer = Promise.withResolvers<void>()
    this.#answers.set(event.id, answer)
    try {
      await this.#socket.send([type, event])
      await this.#answered(answer.promise)
    } finally {
      this.#answers.delete(event.id)
    }
  }

  #answered<T>(promise: Promise<T>): Promise<T> {
    return within(ANSWER_MS, 'nostr', Promise.race([promise, this.#lost]))
  }

  /** A relay that wants to know who asks says so in its refusal: then the work is done once more. */
  async #withAuth<T>(work: () => Promise<T>): Promise<T> {
    const before = this.#authenticated
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof RelayRefusal)) throw error
      if (!wantsAuth(error.message) || this.#challenge === undefined || before !== undefined)
        throw toFailure(this.host, error.message, this.#isOwn)
      await this.#prove(this.#challenge)
    }
    try {
      return await work()
    } catch (error) {
      throw error instanceof RelayRefusal ? toFailure(this.host, error.message, this.#isOwn) : error
    }
  }

  #prove(challenge: string): Promise<void> {
    this.#authenticated ??= this.#sendProof(challenge)
    return this.#authenticated
  }

  async #sendProof(challenge: string): Promise<void> {
    const proof = this.#identity.sign({
      kind: KIND.auth,
      created_at: Math.floor(this.#link.now() / 1000),
      // With the address, so that no relay can use the proof at another one.
      tags: [
        ['relay', this.url],
        ['challenge', challenge],
      ],
      content: '',
    })
    try {
      await this.#send('AUTH', proof)
    } catch (error) {
      throw error instanceof RelayRefusal ? toFailure(this.host, error.message, this.#isOwn) : error
    }
  }

  #read(raw: unknown): FrameWork | undefined {
    const frame = v.safeParse(Frame, raw)
    if (frame.success) return this.#readFrame(frame.output)
    this.#link.log.debug('A relay of Nostr sent something in a form that cannot be read', { relay: this.host })
    return undefined
  }

  #readFrame(frame: Frame): FrameWork | undefined {
    const [type, about] = frame
    if (type === 'EVENT') return this.#readEvent(about, frame[2])
    if (type === 'OK') this.#settle(about, frame[2], frame[3])
    if (type === 'EOSE') this.#complete(about)
    if (type === 'CLOSED') this.#refuse(about, frame[2])
    if (type === 'NOTICE')
      this.#link.log.info('A relay of Nostr says', { relay: this.host, notice: about.slice(0, 300) })
    if (type === 'AUTH') this.#setChallenge(about)
    return undefined
  }

  #readEvent(id: string, raw: unknown): FrameWork | undefined {
    const request = this.#requests.get(id)
    const event = v.safeParse(Event, raw)
    if (!request || !event.success) return undefined
    const { receive, stored, isComplete } = request
    if (isComplete) return receive && (() => receive(event.output))
    if (stored.length < MAX_STORED) stored.push(event.output)
    return undefined
  }

  #settle(id: string, isTaken: boolean, words: string): void {
    const answer = this.#answers.get(id)
    if (isTaken || isDuplicate(words)) answer?.resolve()
    else answer?.reject(new RelayRefusal(words))
  }

  #complete(id: string): void {
    const request = this.#requests.get(id)
    if (!request) return
    request.isComplete = true
    request.complete.resolve()
  }

  /** Also sent for a subscription that the relay no longer serves: then the connection ends, and the next one asks. */
  #refuse(id: string, words: string): void {
    const request = this.#requests.get(id)
    if (!request) return
    if (request.isComplete) throw toFailure(this.host, words, this.#isOwn)
    request.complete.reject(new RelayRefusal(words))
  }

  #setChallenge(challenge: string): void {
    // It goes into an event, which the relay limits.
    this.#challenge = challenge.slice(0, 1024)
    this.#authenticated = undefined
  }
}
