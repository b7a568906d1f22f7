import * as v from 'valibot'
import type { ChannelAdapter, ChannelLink, ChannelState, InboundMessage } from 'svc/channels'
import type { Fetch, OutboundResponse } from 'svc/sdk'
import { toOutboundResponse } from '../../../core/testing/outbound-response.ts'
import { createOutbound } from '../../../core/net/outbound.ts'
import { createSpawn } from '../../../core/process/spawn.ts'
import { Scope } from '../../../core/scope/scope.ts'
import { programStarter } from '../../../plugins/channels/connections/programs.ts'
import { Recorded } from './http.ts'

const settings = {
  allow: ['127.0.0.1'],
  headersTimeoutMs: 10_000,
  idleTimeoutMs: 10_000,
  maxBytes: 33_554_432,
  maxRedirects: 5,
}

/**
 * A link for tests of one adapter without the channel host. It keeps its durable values between connections. `sleep`
 * lasts until `wake`.
 */
export class TestLink implements AsyncDisposable {
  readonly state = new Map<string, string>()
  readonly secrets = new Map<string, string>()
  /** Everything that was logged. */
  readonly logged: string[] = []
  /** Calls of `receive`, duplicates included. */
  deliveries = 0
  /** Calls of `heard`. */
  heard = 0
  /** Connections that are open now. */
  get connections(): number {
    return this.#scope.ledger().length
  }
  /** `receive` rejects, as when the disk is full. */
  isRefusing = false
  /** What the next request is answered with instead of by the platform. */
  nextAnswer: Response | undefined
  /** The link of the present connection. */
  link: ChannelLink<never>
  readonly #received = new Recorded<InboundMessage>('received messages')
  readonly #known = new Set<string>()
  readonly #outbound = createOutbound({ settings: () => settings })
  readonly #scope = new Scope('test')
  readonly #connector = this.#outbound.connectorFor(this.#scope, false)
  readonly #spawn = createSpawn(this.#scope)
  readonly #config: unknown
  readonly #now: () => number
  readonly #sleeping = new Set<() => void>()
  readonly #awaitingSleep = new Set<() => void>()
  #controller = new AbortController()

  constructor(
    adapter: ChannelAdapter,
    config: Readonly<Record<string, unknown>>,
    now: () => number = () => Date.now(),
  ) {
    this.#config = v.parse(adapter.config, config)
    this.#now = now
    this.link = this.#makeLink()
  }

  /** Messages that were received for the first time, in order. */
  get received(): readonly InboundMessage[] {
    return this.#received.items
  }
  waitForReceived(count: number): Promise<readonly InboundMessage[]> {
    return this.#received.wait(count)
  }
  /** Ends every `sleep` that runs. */
  wake(): void {
    for (const end of this.#sleeping) end()
  }
  /** Settles when the adapter sleeps. */
  async waitForSleep(): Promise<void> {
    if (this.#sleeping.size === 0) await new Promise<void>((resolve) => this.#awaitingSleep.add(resolve))
  }
  /** Ends the `sleep` that runs, or else the next one. */
  async wakeNext(): Promise<void> {
    await this.waitForSleep()
    this.wake()
  }
  /** Ends the present link, as disable, reload and unload do. */
  abort(): void {
    this.#controller.abort(new Error('the link ended'))
  }
  /** Ends the present link and makes a new one with the same durable values. */
  renew(): ChannelLink<never> {
    this.abort()
    this.#controller = new AbortController()
    this.link = this.#makeLink()
    return this.link
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.abort()
    await this.#scope.close(0)
    await this.#outbound[Symbol.asyncDispose]()
  }

  #makeLink(): ChannelLink<never> {
    const { signal } = this.#controller
    const log = (...args: unknown[]): void => {
      this.logged.push(args.map(describe).join(' '))
    }
    return {
      accountId: 'default',
      config: this.#config as never,
      signal,
      fetch: (url, request) => this.#fetch(url, request),
      connect: (options) => this.#connector.connect({ ...options, signal: both(signal, options.signal) }),
      startTls: this.#connector.startTls,
      webSocket: (url, options) =>
        this.#connector.webSocket(url, { ...options, signal: both(signal, options?.signal) }),
      startProgram: programStarter(this.#spawn, signal),
      state: keep(this.state),
      secrets: keep(this.secrets),
      log: { debug: log, info: log, warn: log, error: log },
      now: this.#now,
      sleep: () => this.#sleep(signal),
      receive: (message) => this.#receive(message),
      heard: () => {
        this.heard++
      },
    }
  }

  async #fetch(...[url, request]: Parameters<Fetch>): Promise<OutboundResponse> {
    const answer = this.nextAnswer
    this.nextAnswer = undefined
    return answer ? toOutboundResponse(answer, new URL(url)) : this.#outbound.fetch(url, request)
  }

  #sleep(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (): void => {
        this.#sleeping.delete(end)
        signal.removeEventListener('abort', end)
        if (signal.aborted) reject(signal.reason)
        else resolve()
      }
      if (signal.aborted) return end()
      signal.addEventListener('abort', end)
      this.#sleeping.add(end)
      for (const notify of this.#awaitingSleep) notify()
      this.#awaitingSleep.clear()
    })
  }

  async #receive(message: InboundMessage): Promise<void> {
    this.deliveries++
    if (this.isRefusing) throw new Error('the disk is full')
    const key = message.isEdit ? `${message.id} ${message.text}` : message.id
    if (this.#known.has(key)) return
    this.#known.add(key)
    this.#received.add(message)
  }
}

function both(one: AbortSignal, other: AbortSignal | undefined): AbortSignal {
  return other ? AbortSignal.any([one, other]) : one
}

function describe(value: unknown): string {
  return value instanceof Error ? `${value.message} ${value.stack}` : (JSON.stringify(value) ?? '')
}

function keep(values: Map<string, string>): ChannelState {
  return {
    read: async (key) => values.get(key),
    write: async (key, value) => {
      values.set(key, value)
    },
  }
}
