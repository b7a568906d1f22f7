import * as v from 'valibot'
import { endOf, JsonSocket, pause, within } from 'svc/channels'
import type { ChannelLink, ConnectionEnd, FrameWork, SocketEnd } from 'svc/channels'
import type { QqApi } from './api.ts'
import type { QqConfig } from './config.ts'
import { endOfCode, failureOf, isSessionEnded } from './errors.ts'
import type { SavedSession } from './session.ts'
import { Frame, Hello, Ready } from './wire.ts'

export interface GatewayDeps {
  readonly link: ChannelLink<QqConfig>
  readonly api: Pick<QqApi, 'gateway' | 'token'>
  readonly session: SavedSession
  /** Deals with an event. Settles when it is durable. */
  readonly dispatch: (type: string, data: unknown) => Promise<void>
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
const INVALID_SESSION_SECS = 3

/** One connection to the gateway, from its hello to its end. */
export class Gateway {
  readonly #deps: GatewayDeps
  readonly #ready = Promise.withResolvers<void>()
  readonly #controller = new AbortController()
  #socket: JsonSocket | undefined
  #token = ''
  /** That of the last event that came, which heartbeats tell; the session has that of the last one dealt with. */
  #lastSeq: number | null = null
  #isAcknowledged = true
  /** Why we ended the connection. */
  #ownEnd: ConnectionEnd | undefined
  #closed: Promise<ConnectionEnd> | undefined

  constructor(deps: GatewayDeps) {
    this.#deps = deps
  }

  /** Settles when events arrive. Throws `UpstreamFailure`. */
  async open(): Promise<void> {
    const { link, api } = this.#deps
    const { url } = await api.gateway()
    this.#token = `QQBot ${await api.token.get()}`
    const socket = new JsonSocket(link, await link.webSocket(url, { signal: link.signal }), (frame) =>
      this.#read(frame),
    )
    this.#socket = socket
    this.#closed = this.#watch(socket)
    const lost = this.#closed.then((end) => {
      throw failureOf(end)
    })
    // Once the gateway is ready, its end is told by `closed`.
    lost.catch(() => undefined)
    try {
      await within(HANDSHAKE_MS, 'qq', Promise.race([this.#ready.promise, lost]))
    } catch (error) {
      await this.close()
      link.signal.throwIfAborted()
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

  async #watch(socket: JsonSocket): Promise<ConnectionEnd> {
    const close = await socket.ended
    this.#controller.abort()
    const { session, link } = this.#deps
    try {
      if (!this.#ownEnd && close.failure === undefined && isSessionEnded(close.code)) await session.forget()
      await session.flush()
    } catch (error) {
      // An older position holds: what came after it is delivered again.
      link.log.warn('The position in the events of QQ could not be saved', { error })
    }
    return this.#endOf(close)
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
        return this.#endWith({ retry: 'later', reason: 'qq asked for a new connection', retryAfterSecs: 0 })
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
    const { current } = this.#deps.session
    if (current) {
      this.#lastSeq = current.seq
      void this.#send(Op.resume, { token: this.#token, session_id: current.id, seq: current.seq })
      return
    }
    const { intents } = this.#deps.link.config
    void this.#send(Op.identify, { token: this.#token, intents, shard: [0, 1], properties: {} })
  }

  #receive({ s: seq, t: type, d: data }: Frame): FrameWork {
    if (seq != null) this.#lastSeq = seq
    const { session, dispatch } = this.#deps
    return async () => {
      if (type === 'READY') await session.begin({ id: v.parse(Ready, data).session_id, seq: seq ?? 0 })
      else if (type != null) await dispatch(type, data)
      if (seq != null) session.advance(seq)
      if (type === 'READY' || type === 'RESUMED') this.#ready.resolve()
    }
  }

  #invalidate(isResumable: boolean): FrameWork {
    return async () => {
      if (!isResumable) await this.#deps.session.forget()
      const retryAfterSecs = isResumable ? 0 : INVALID_SESSION_SECS
      this.#endWith({ retry: 'later', reason: 'qq ended the session', retryAfterSecs })
    }
  }

  /** Heartbeats until the connection ends. One that is not acknowledged before the next means a dead connection. */
  async #beat(intervalMs: number): Promise<void> {
    while (await pause(this.#deps.link, intervalMs, this.#controller.signal)) {
      if (!this.#isAcknowledged) {
        this.#ownEnd ??= { retry: 'later', reason: 'qq did not acknowledge a heartbeat' }
        this.#socket?.terminate()
        return
      }
      this.#isAcknowledged = false
      await this.#send(Op.heartbeat, this.#lastSeq)
    }
  }

  async #send(op: number, d: unknown): Promise<void> {
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
