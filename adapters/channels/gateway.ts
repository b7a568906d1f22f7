import * as v from 'valibot'
import { omitUndefined, UpstreamFailure } from 'svc/sdk'
import { endOf, pause } from './background.ts'
import type { ChannelLink, ConnectionEnd } from './channel.ts'
import { EventConnection } from './event-connection.ts'
import type { FrameWork, SocketEnd } from './frame-socket.ts'
import type { GatewaySession } from './gateway-session.ts'
import { JsonSocket } from './json-socket.ts'

/** What the close codes of a platform mean. */
export interface GatewayCloseCodes {
  /** Codes after which another attempt fails in the same way, and what to change. */
  readonly fatal: ReadonlyMap<number, string>
  /** Whether the session cannot be resumed after a connection that closed with this code. */
  endsSession(code: number): boolean
}

export interface GatewayDeps {
  /** The platform, as failures name it. */
  readonly system: string
  readonly link: Pick<ChannelLink<unknown>, 'webSocket' | 'signal' | 'sleep' | 'now' | 'log' | 'heard'>
  readonly session: GatewaySession
  readonly closeCodes: GatewayCloseCodes
  /** The address for a connection without a session to resume, or whose own address does not answer. */
  findUrl(): Promise<string>
  /** The address to connect to, of one that the platform told; without it, the same. */
  readonly addressOf?: (url: string) => string
  /** The token of the bot, asked for before each connection. */
  token(): Promise<string>
  /** What starts a session beside the token. */
  readonly identify: Readonly<Record<string, unknown>>
  /** Deals with an event. Settles when it is durable. */
  dispatch(type: string, data: unknown): Promise<void>
  /** Reads what came while there was no session. Settles when it is durable. */
  readonly catchUp?: () => Promise<void>
  /** Writes what the other two remember. */
  readonly flush?: () => Promise<void>
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
/** A connection that sends more than 120 frames in a minute is closed. */
const MAX_SENDS = 110
const SEND_WINDOW_MS = 60_000
const RATE_LIMITED = 4008
const RATE_LIMITED_SECS = 60

/** Source: https://docs.discord.com/developers/events/gateway-events (looked up in November 2026) */
export const GatewayFrame = v.object({
  op: v.number(),
  d: v.optional(v.unknown()),
  s: v.nullish(v.number()),
  t: v.nullish(v.string()),
})
type GatewayFrame = v.InferOutput<typeof GatewayFrame>
/** A server must not make the daemon busy, nor look alive without a sign for long. */
export const Hello = v.object({ heartbeat_interval: v.pipe(v.number(), v.toMinValue(1000), v.toMaxValue(60_000)) })
const Ready = v.object({ session_id: v.string(), resume_gateway_url: v.optional(v.string()) })
type Ready = v.InferOutput<typeof Ready>

/** One connection to a gateway of the form that Discord made and others took over, from its hello to its end. */
export class Gateway {
  readonly #deps: GatewayDeps
  readonly #connection: EventConnection
  #token = ''
  /** That of the last event that came, which heartbeats tell; the session has that of the last one dealt with. */
  #lastSeq: number | null = null
  #isAcknowledged = true
  #sendTimes: number[] = []
  #isEndedByUs = false

  constructor(deps: GatewayDeps) {
    this.#deps = deps
    const { system, link, closeCodes } = deps
    this.#connection = new EventConnection({
      system,
      link,
      flush: (end) => this.#flush(end),
      endOfCode: (code) => endOfCode(system, closeCodes, code),
    })
  }

  /** Settles when events arrive. Throws `UpstreamFailure`. */
  async open(): Promise<void> {
    this.#token = await this.#deps.token()
    await this.#connection.open(await this.#connect())
  }

  get closed(): Promise<ConnectionEnd> {
    return this.#connection.closed
  }

  /** Leaves the session open, so that the next connection misses nothing. */
  async close(): Promise<void> {
    this.#isEndedByUs = true
    await this.#connection.close()
  }

  async #connect(): Promise<JsonSocket> {
    const { link, session, findUrl, addressOf } = this.#deps
    const open = async (url: string): Promise<JsonSocket> =>
      new JsonSocket(link, await link.webSocket(addressOf?.(url) ?? url, { signal: link.signal }), (frame) =>
        this.#read(frame),
      )
    const url = session.current?.url
    if (url === undefined) return open(await findUrl())
    try {
      return await open(url)
    } catch (error) {
      // Any gateway resumes a session; the one that the platform names for it does so faster.
      if (!(error instanceof UpstreamFailure)) throw error
      return open(await findUrl())
    }
  }

  async #flush({ code, failure }: SocketEnd): Promise<void> {
    const { session, closeCodes, flush } = this.#deps
    const isEnded = closeCodes.fatal.has(code) || closeCodes.endsSession(code)
    if (isEnded && failure === undefined && !this.#isEndedByUs) await session.forget()
    await session.flush()
    await flush?.()
  }

  #read(raw: unknown): FrameWork | undefined {
    const { system } = this.#deps
    const frame = v.parse(GatewayFrame, raw)
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
        return this.#endWith({ retry: 'later', reason: `${system} asked for a new connection`, retryAfterSecs: 0 })
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
    const { session, identify } = this.#deps
    const { current } = session
    const token = this.#token
    if (current) {
      this.#lastSeq = current.seq
      void this.#send(Op.resume, { token, session_id: current.id, seq: current.seq })
      return
    }
    void this.#send(Op.identify, { token, ...identify })
  }

  #receive({ s: seq, t: type, d: data }: GatewayFrame): FrameWork {
    if (seq != null) this.#lastSeq = seq
    return async () => {
      if (type === 'READY') await this.#begin(v.parse(Ready, data), seq ?? 0)
      else if (type != null) await this.#deps.dispatch(type, data)
      if (seq != null) this.#deps.session.advance(seq)
      if (type === 'RESUMED') this.#connection.setReady()
    }
  }

  /** The session is kept when the time before it is dealt with: until then another connection does it again. */
  async #begin({ session_id: id, resume_gateway_url: url }: Ready, seq: number): Promise<void> {
    this.#connection.setReady()
    await this.#deps.catchUp?.()
    await this.#deps.session.begin(omitUndefined({ id, url, seq }))
  }

  #invalidate(isResumable: boolean): FrameWork {
    return async () => {
      const { session, system, random } = this.#deps
      if (!isResumable) await session.forget()
      // A wait of one to five seconds is asked for before the next session.
      const retryAfterSecs = isResumable ? 0 : 1 + 4 * random()
      this.#endWith({ retry: 'later', reason: `${system} ended the session`, retryAfterSecs })
    }
  }

  /** Heartbeats until the connection ends. One that is not acknowledged before the next means a dead connection. */
  async #beat(intervalMs: number): Promise<void> {
    const { link, system, random } = this.#deps
    let waitMs = intervalMs * random()
    while (await pause(link, waitMs, this.#connection.signal)) {
      if (!this.#isAcknowledged) {
        this.#isEndedByUs = true
        return this.#connection.dropWith({ retry: 'later', reason: `${system} did not acknowledge a heartbeat` })
      }
      this.#isAcknowledged = false
      await this.#send(Op.heartbeat, this.#lastSeq)
      waitMs = intervalMs
    }
  }

  async #send(op: number, d: unknown): Promise<void> {
    const now = this.#deps.link.now()
    this.#sendTimes = this.#sendTimes.filter((time) => now - time < SEND_WINDOW_MS)
    // Only heartbeats that the platform asks for can be so many.
    if (this.#sendTimes.length >= MAX_SENDS) return
    this.#sendTimes.push(now)
    try {
      await this.#connection.send({ op, d })
    } catch (error) {
      this.#endWith(endOf(error))
    }
  }

  #endWith(end: ConnectionEnd): undefined {
    this.#isEndedByUs = true
    return this.#connection.endWith(end)
  }
}

function endOfCode(system: string, { fatal }: GatewayCloseCodes, code: number): ConnectionEnd {
  const reason = `${system} closed the connection with ${code}`
  const change = fatal.get(code)
  if (change !== undefined) return { retry: 'never', reason: `${reason}: ${change}` }
  const retryAfterSecs = code === RATE_LIMITED ? RATE_LIMITED_SECS : undefined
  return omitUndefined({ retry: 'later' as const, reason, retryAfterSecs })
}
