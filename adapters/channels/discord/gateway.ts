import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { endOf, JsonSocket, pause, within } from 'svc/channels'
import type { ChannelLink, ConnectionEnd, FrameWork, SocketEnd } from 'svc/channels'
import type { DiscordConfig } from './config.ts'
import { endOfCode, failureOf, isSessionEnded } from './errors.ts'
import type { SavedSession } from './session.ts'
import { Frame, Hello, Ready } from './wire.ts'

export interface GatewayDeps {
  readonly link: ChannelLink<DiscordConfig>
  readonly session: SavedSession
  /** The address for a connection without a session to resume. */
  findUrl(): Promise<string>
  /** Deals with an event. Settles when it is durable. */
  dispatch(type: string, data: unknown): Promise<void>
  /** Reads what came while there was no session. Settles when it is durable. */
  catchUp(): Promise<void>
  /** Writes what the other two remember. */
  flush(): Promise<void>
  /** Between 0 and 1. */
  random(): number
}

const Op = {
  dispatch: 0,
  heartbeat: 1,
  identify: 2,
  resume: 6,
  reconnect: 7,
  invalidSession: 9,
  hello: 10,
  heartbeatAck: 11,
} as const
const HANDSHAKE_MS = 20_000
/** Discord closes a connection that sends more than 120 frames in a minute. */
const MAX_SENDS = 110
const SEND_WINDOW_MS = 60_000

/** One connection to the gateway, from its hello to its end. */
export class Gateway {
  readonly #deps: GatewayDeps
  readonly #ready = Promise.withResolvers<void>()
  readonly #controller = new AbortController()
  #socket: JsonSocket | undefined
  /** That of the last event that came, which heartbeats tell; the session has that of the last one dealt with. */
  #lastSeq: number | null = null
  #isAcknowledged = true
  #sendTimes: number[] = []
  /** Why we ended the connection. */
  #ownEnd: ConnectionEnd | undefined
  #closed: Promise<ConnectionEnd> | undefined

  constructor(deps: GatewayDeps) {
    this.#deps = deps
  }

  /** Settles when events arrive. Throws `UpstreamFailure`. */
  async open(): Promise<void> {
    await this.#connect()
    const ended = this.#watch().then((end) => {
      throw failureOf(end)
    })
    // Once the gateway is ready, its end is told by `closed`.
    ended.catch(() => undefined)
    try {
      await within(HANDSHAKE_MS, 'discord', Promise.race([this.#ready.promise, ended]))
    } catch (error) {
      await this.close()
      this.#deps.link.signal.throwIfAborted()
      throw error
    }
  }

  get closed(): Promise<ConnectionEnd> {
    if (!this.#closed) throw new Error('The gateway was not opened')
    return this.#closed
  }

  /** Leaves the session open, so that the next connection misses nothing. */
  async close(): Promise<void> {
    await this.#socket?.close()
    await this.#closed
  }

  async #connect(): Promise<void> {
    const { link, session, findUrl } = this.#deps
    const open = async (url: string): Promise<JsonSocket> => {
      const address = `${url.replace(/\/+$/, '')}/?v=10&encoding=json`
      return new JsonSocket(link, await link.webSocket(address, { signal: link.signal }), (frame) => this.#read(frame))
    }
    const { current } = session
    if (!current) {
      this.#socket = await open(await findUrl())
      return
    }
    try {
      this.#socket = await open(current.url)
    } catch (error) {
      // Any gateway resumes a session; the one that Discord names for it does so faster.
      if (!(error instanceof UpstreamFailure)) throw error
      this.#socket = await open(await findUrl())
    }
  }

  #watch(): Promise<ConnectionEnd> {
    const { session, link, flush } = this.#deps
    this.#closed = (async () => {
      const close = await this.#socket!.ended
      this.#controller.abort()
      const end = this.#endOf(close)
      try {
        if (!this.#ownEnd && !close.failure && isSessionEnded(close.code)) await session.forget()
        await session.flush()
        await flush()
      } catch (error) {
        // An older position holds: what came after it is delivered again.
        link.log.warn('The position in the events of Discord could not be saved', { error })
      }
      return end
    })()
    return this.#closed
  }

  #endOf(close: SocketEnd): ConnectionEnd {
    if (this.#ownEnd) return this.#ownEnd
    return close.failure === undefined ? endOfCode(close.code) : endOf(close.failure)
  }

  #read(raw: unknown): FrameWork | undefined {
    const frame = v.parse(Frame, raw)
    switch (frame.op) {
      case Op.hello:
        return this.#greet(v.parse(Hello, frame.d).heartbeat_interval)
      case Op.heartbeatAck:
        this.#isAcknowledged = true
        return undefined
      case Op.heartbeat:
        void this.#send(Op.heartbeat, this.#lastSeq)
        return undefined
      case Op.reconnect:
        return this.#endWith({ retry: 'later', reason: 'discord asked for a new connection', retryAfterSecs: 0 })
      case Op.invalidSession:
        return this.#invalidate(frame.d === true)
      case Op.dispatch:
        return this.#receive(frame)
      default:
        return undefined
    }
  }

  #greet(intervalMs: number): undefined {
    void this.#beat(intervalMs)
    const { link, session } = this.#deps
    const { token, intents } = link.config
    const { current } = session
    if (current) {
      this.#lastSeq = current.seq
      void this.#send(Op.resume, { token, session_id: current.id, seq: current.seq })
      return
    }
    const properties = { os: 'linux', browser: 'svc', device: 'svc' }
    void this.#send(Op.identify, { token, intents, properties })
  }

  #receive({ s: seq, t: type, d: data }: Frame): FrameWork {
    if (seq != null) this.#lastSeq = seq
    return async () => {
      if (type === 'READY') await this.#begin(v.parse(Ready, data), seq ?? 0)
      else if (type != null) await this.#deps.dispatch(type, data)
      if (seq != null) this.#deps.session.advance(seq)
      if (type === 'RESUMED') this.#ready.resolve()
    }
  }

  /** The session is kept when the time before it is dealt with: until then another connection does it again. */
  async #begin({ session_id: id, resume_gateway_url: url }: Ready, seq: number): Promise<void> {
    this.#ready.resolve()
    await this.#deps.catchUp()
    await this.#deps.session.begin({ id, url, seq })
  }

  #invalidate(isResumable: boolean): FrameWork {
    return async () => {
      if (!isResumable) await this.#deps.session.forget()
      // Discord asks for a wait of one to five seconds before the next session.
      const retryAfterSecs = isResumable ? 0 : 1 + 4 * this.#deps.random()
      this.#endWith({ retry: 'later', reason: 'discord ended the session', retryAfterSecs })
    }
  }

  /** Heartbeats until the connection ends. One that is not acknowledged before the next means a dead connection. */
  async #beat(intervalMs: number): Promise<void> {
    const { link, random } = this.#deps
    let waitMs = intervalMs * random()
    while (await pause(link, waitMs, this.#controller.signal)) {
      if (!this.#isAcknowledged) {
        this.#ownEnd ??= { retry: 'later', reason: 'discord did not acknowledge a heartbeat' }
        this.#socket?.terminate()
        return
      }
      this.#isAcknowledged = false
      await this.#send(Op.heartbeat, this.#lastSeq)
      waitMs = intervalMs
    }
  }

  async #send(op: number, d: unknown): Promise<void> {
    const now = this.#deps.link.now()
    this.#sendTimes = this.#sendTimes.filter((time) => now - time < SEND_WINDOW_MS)
    // Only heartbeats that Discord asks for can be so many.
    if (this.#sendTimes.length >= MAX_SENDS) return
    this.#sendTimes.push(now)
    try {
      await this.#socket?.send({ op, d })
    } catch (error) {
      this.#endWith(endOf(error))
    }
  }

  #endWith(end: ConnectionEnd): undefined {
    this.#ownEnd ??= end
    void this.#socket?.close()
  }
}
