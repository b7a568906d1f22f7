import { randomUUID } from 'node:crypto'
import * as v from 'valibot'
import { KeyedQueue, UpstreamFailure } from 'svc/sdk'
import { EventConnection, JsonSocket, pause, within } from 'svc/channels'
import type { ChannelLink, ConnectionEnd, FrameWork } from 'svc/channels'
import { frameFailure, refusedRobot } from './errors.ts'
import { BotEvent, Frame } from './wire.ts'

const PING_MS = 30_000
const ANSWER_MS = 15_000
const NORMAL = 1000
const TAKEN_OVER_SECS = 60

export interface BotCredentials {
  readonly botId: string
  readonly secret: string
}

/** The long connection of one robot: there is one at a time. */
export class BotSocket {
  readonly #link: ChannelLink<unknown>
  readonly #receive: (body: unknown, reqId: string) => Promise<void>
  readonly #connection: EventConnection
  readonly #pending = new Map<string, PromiseWithResolvers<Frame>>()
  /** Answers name the request, so requests of one name wait for each other. */
  readonly #queue = new KeyedQueue()

  constructor(link: ChannelLink<unknown>, receive: (body: unknown, reqId: string) => Promise<void>) {
    this.#link = link
    this.#receive = receive
    this.#connection = new EventConnection({ system: 'wecom', link, closeCode: NORMAL })
  }

  /** Settles when messages come. Throws `UpstreamFailure`. */
  async open(url: string, { botId, secret }: BotCredentials): Promise<void> {
    const raw = await this.#link.webSocket(url, { signal: this.#link.signal })
    const socket = new JsonSocket(this.#link, raw, (frame) => this.#read(frame))
    this.#connection.follow(socket)
    void this.closed.then(({ reason }) => this.#fail(reason))
    try {
      const { errcode: code, errmsg } = await this.#exchange('aibot_subscribe', { bot_id: botId, secret })
      if (code !== 0) throw refusedRobot(code ?? -1, errmsg)
    } catch (error) {
      await this.close()
      this.#link.signal.throwIfAborted()
      throw error
    }
    void this.#keepAlive()
  }

  get closed(): Promise<ConnectionEnd> {
    return this.#connection.closed
  }

  async close(): Promise<void> {
    await this.#connection.close()
  }

  /** Settles when WeCom has taken it. Throws `UpstreamFailure`. */
  async request(cmd: string, body: object, reqId?: string): Promise<void> {
    await this.ask(cmd, body, v.unknown(), reqId)
  }

  /** The body of the answer. Throws `UpstreamFailure`. */
  async ask<S extends v.GenericSchema>(
    cmd: string,
    body: object,
    schema: S,
    reqId?: string,
  ): Promise<v.InferOutput<S>> {
    const { errcode: code, errmsg, body: answer } = await this.#exchange(cmd, body, reqId)
    if (code !== 0) throw frameFailure(code ?? -1, errmsg)
    const result = v.safeParse(schema, answer)
    if (result.success) return result.output
    throw new UpstreamFailure('wecom', `wecom answered ${cmd} in a form that cannot be read`, {
      reason: 'malformed',
      retry: 'later',
    })
  }

  #exchange(cmd: string, body: object | undefined, reqId = `${cmd}_${randomUUID()}`): Promise<Frame> {
    return this.#queue.run(reqId, async () => {
      const { signal } = this.#link
      signal.throwIfAborted()
      const pending = Promise.withResolvers<Frame>()
      this.#pending.set(reqId, pending)
      try {
        await this.#send({ cmd, headers: { req_id: reqId }, ...(body && { body }) })
        return await within(ANSWER_MS, 'wecom', pending.promise)
      } finally {
        this.#pending.delete(reqId)
      }
    })
  }

  async #send(frame: object): Promise<void> {
    try {
      await this.#connection.send(frame)
    } catch {
      // How it ended is told by `closed`.
      throw new UpstreamFailure('wecom', 'the connection is closed', { reason: 'network', retry: 'later' })
    }
  }

  /** Ends what waits for an answer. */
  #fail(reason: string): void {
    const failure = new UpstreamFailure('wecom', reason, { reason: 'network', retry: 'later' })
    for (const { reject } of this.#pending.values()) reject(failure)
  }

  async #keepAlive(): Promise<void> {
    while (await pause(this.#link, PING_MS, this.#connection.signal)) {
      try {
        await this.#exchange('ping', undefined)
      } catch (error) {
        // An answer that does not come is a silence, which the host notices.
        this.#link.log.debug('WeCom did not answer a sign of life', { error })
      }
    }
  }

  #read(raw: unknown): FrameWork | undefined {
    const frame = v.parse(Frame, raw)
    const { cmd, headers, body } = frame
    if (cmd === 'aibot_msg_callback') return () => this.#receive(body, headers.req_id)
    if (cmd === 'aibot_event_callback') return () => this.#event(body)
    this.#pending.get(headers.req_id)?.resolve(frame)
    return undefined
  }

  async #event(body: unknown): Promise<void> {
    const event = v.safeParse(BotEvent, body)
    if (!event.success || event.output.event.eventtype !== 'disconnected_event') return
    // Whoever connected would be disconnected in turn, and so on: this waits.
    throw new UpstreamFailure('wecom', 'wecom: another program connected as this robot', {
      reason: 'overloaded',
      retry: 'later',
      retryAfterSecs: TAKEN_OVER_SECS,
    })
  }
}
