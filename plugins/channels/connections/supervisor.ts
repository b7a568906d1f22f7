import type { ChannelAdapter, ChannelConnection, ConnectionEnd, InboundMessage } from 'svc/channels'
import { BEATS, createMask, messageOf, namesSecret } from 'svc/internal'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { Account } from '../accounts/account.ts'
import { describeUnsetVariables, readConfig } from '../accounts/adapter-config.ts'
import { secretFields } from '../accounts/fields.ts'
import { describeUnknownFields } from '../accounts/unknown-fields.ts'
import type { Clock } from 'svc/internal'
import { backoffMs } from './backoff.ts'
import type { OpenConnection } from './connections.ts'
import { classifyError, ended, retried } from './failure.ts'
import type { Ending } from './failure.ts'
import type { AccountLease } from './lease.ts'
import { createLink, sleep } from './link.ts'
import type { LinkDeps } from './link.ts'
import { initialStatus } from './status.ts'
import type { ConnectionStatus } from './status.ts'

export interface SupervisorSettings {
  readonly open_timeout_secs: number
  readonly close_timeout_ms: number
  readonly reconnect_min_ms: number
  readonly reconnect_max_ms: number
  readonly stable_ms: number
  readonly lease_secs: number
}
export interface SupervisorDeps extends LinkDeps {
  readonly account: Account
  /** Imports the adapter. */
  readonly load: () => Promise<ChannelAdapter>
  /** A call of the adapter ended. */
  readonly called: (failure?: { readonly error: unknown }) => void
  readonly lease: Pick<AccountLease, 'acquire' | 'release'>
  readonly settings: SupervisorSettings
  readonly random: () => number
  /** Settles when a message is durable, or is a duplicate, or is refused by a policy. */
  readonly receive: (account: Account, adapter: ChannelAdapter, message: InboundMessage) => Promise<void>
  /** The connection opened, ended, or the status changed in a way that others act upon. */
  readonly changed: (event: 'connected' | 'disconnected' | 'ended', reason: string) => void
}

interface Session {
  readonly controller: AbortController
  /** Settles with why the connection has to end. */
  readonly ended: Promise<Ending>
  end(ending: Ending): void
}

const MAX_WARNINGS = 10
const UNSIGNED =
  'requests to the webhook are refused, because their signature is wrong: compare the secrets of the webhook with those ' +
  'at the platform, and the clock of this machine with the right time, unless somebody else sends them'

/** Keeps one account connected: opens, watches, closes and opens again until it is stopped. */
export class AccountSupervisor {
  readonly account: Account
  readonly #deps: SupervisorDeps
  readonly #clock: Clock
  readonly #mask = createMask()
  readonly #stop = new AbortController()
  #status: ConnectionStatus = initialStatus('connecting')
  #open: OpenConnection | undefined
  /** A callback of an earlier connection finds another number here. */
  #generation = 0
  /** Whether the lease of the account ended while the account was connected, and is not back yet. */
  #isLost = false
  #lastHeard = 0
  /** Fields of the account that nothing reads, or whose variable is not set; `undefined` until the adapter is loaded. */
  #ignored: readonly string[] | undefined
  /** Requests to the webhook of this connection that were not signed as they have to be. */
  #unsigned = 0
  /** Whether this account can sign in again with a QR code. */
  #signsIn = false
  /** Messages on their way to the platform. */
  readonly #sends = new Set<Promise<unknown>>()
  #loop: Promise<void> | undefined
  /** Ends the pause before the next attempt, while another daemon has the account. */
  #retry = (): void => undefined
  readonly #attempted = Promise.withResolvers<void>()

  constructor(deps: SupervisorDeps) {
    this.#deps = deps
    this.account = deps.account
    this.#clock = deps.clock
    this.#hide(namesSecret)
  }

  get status(): ConnectionStatus {
    return this.#status
  }
  get open(): OpenConnection | undefined {
    return this.#open
  }

  /** Settles when the first attempt to connect has succeeded or failed. */
  get attempted(): Promise<void> {
    return this.#attempted.promise
  }

  /** What the account and its adapter warn of, without secrets. */
  warnings(): readonly string[] {
    const warnings = this.#open?.connection.warnings?.() ?? []
    const unsigned = this.#unsigned === 0 ? [] : [`${UNSIGNED} (${this.#unsigned} since it connected)`]
    return [...(this.#ignored ?? []), ...unsigned, ...warnings.slice(0, MAX_WARNINGS)].map((text) =>
      this.#mask.text(text),
    )
  }

  /** Keeps values of these fields out of the status. */
  #hide(isSecret: (key: string) => boolean): void {
    for (const [key, value] of Object.entries(this.account.config))
      if (typeof value === 'string' && isSecret(key)) this.#mask.register(value)
  }

  start(): void {
    this.#loop ??= this.#run().catch((error: unknown) => {
      this.#deps.log.error(`channel ${this.#name}: its supervisor failed`, error)
      this.#update({ state: 'error', lastError: 'the supervisor of this connection failed; see the log' })
      this.#attempted.resolve()
    })
  }
  /** Another daemon may have let the account go. */
  retry(): void {
    this.#retry()
  }
  /** Settles when nothing of the account runs, or its adapter did not end in time. */
  async stop(reason: string): Promise<void> {
    this.#stop.abort(new Error(reason))
    await this.#loop
  }

  get #name(): string {
    return `${this.account.channel}/${this.account.id}`
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    const { settings, random } = this.#deps
    const pauses = { minMs: settings.reconnect_min_ms, maxMs: settings.reconnect_max_ms, random }
    let failures = 0
    while (!signal.aborted) {
      const openedAt = this.#clock.now()
      const ending = await this.#attempt()
      this.#attempted.resolve()
      if (ending === 'standby') {
        await this.#pause((settings.lease_secs * 1000) / BEATS, 'standby')
        continue
      }
      if (signal.aborted || ending === 'stopped') break
      if (this.#settle(ending)) break
      const wasStable = this.#status.startedAt !== undefined && this.#clock.now() - openedAt >= settings.stable_ms
      failures = wasStable ? 0 : failures + 1
      const pauseMs = backoffMs(Math.max(0, failures - 1), ending.retryAfterSecs, pauses)
      await this.#pause(pauseMs, ending.isDefect ? 'error' : 'backing_off')
    }
    await this.#deps.lease.release()
  }

  /** Records why a connection ended. `true` when no other attempt follows. */
  #settle(ending: Ending): boolean {
    this.#update({ lastError: this.#mask.text(ending.reason) })
    if (ending.final === undefined) return false
    this.#update({ state: ending.final, startedAt: undefined })
    this.#deps.changed('ended', this.#mask.text(ending.reason))
    return true
  }

  async #pause(ms: number, state: 'standby' | 'backing_off' | 'error'): Promise<void> {
    this.#update({ state, startedAt: undefined, nextRetryAt: this.#clock.now() + ms })
    const early = new AbortController()
    if (state === 'standby') this.#retry = () => early.abort()
    // Rejects when the account is stopped, which ends the loop, or tried again early.
    await sleep(this.#clock, ms, AbortSignal.any([this.#stop.signal, early.signal])).catch(() => undefined)
    this.#update({ nextRetryAt: undefined })
  }

  /** One connection from opening to its end. */
  async #attempt(): Promise<Ending | 'standby' | 'stopped'> {
    const { lease } = this.#deps
    let adapter: ChannelAdapter | undefined
    const session = this.#session()
    try {
      const held = await lease.acquire()
      if (!held) {
        this.#update({ lastError: 'another daemon on the same database is connected' })
        return 'standby'
      }
      if (this.#isLost) this.#deps.log.info(`channel ${this.#name}: this daemon has the account again`)
      this.#isLost = false
      const lose = (): void => {
        this.#isLost = true
        this.#deps.log.warn(`channel ${this.#name}: this daemon has lost the account: ${messageOf(held.reason)}`)
        session.end(retried('another daemon took over this account'))
      }
      held.addEventListener('abort', lose, { once: true, signal: session.controller.signal })
      this.#update({ state: 'connecting' })
      adapter = await this.#deps.load()
      const secrets = secretFields(adapter.config)
      this.#hide((key) => secrets.includes(key))
      this.#ignored ??= this.#tellIgnored(adapter)
      return await this.#connect(adapter, session)
    } catch (error) {
      if (this.#stop.signal.aborted) return 'stopped'
      const ending = classifyError(error, this.#signsIn)
      if (ending.isDefect) {
        this.#deps.log.error(`channel ${this.#name}: the adapter failed`, error)
        this.#deps.called({ error })
      }
      return ending
    } finally {
      this.#generation++
      session.controller.abort(new Error('the connection has ended'))
    }
  }

  #tellIgnored(adapter: ChannelAdapter): readonly string[] {
    const { account } = this
    const ignored = [...describeUnknownFields(adapter, account.config), ...describeUnsetVariables(adapter, account)]
    for (const one of ignored) this.#deps.log.warn(`channel ${this.#name}: ${one}`)
    return ignored
  }

  #session(): Session {
    const controller = new AbortController()
    const { promise, resolve } = Promise.withResolvers<Ending>()
    this.#stop.signal.addEventListener('abort', () => resolve(retried('stopped')), {
      once: true,
      signal: controller.signal,
    })
    return { controller, ended: promise, end: resolve }
  }

  async #connect(adapter: ChannelAdapter, session: Session): Promise<Ending | 'stopped'> {
    const generation = ++this.#generation
    const { controller } = session
    const isCurrent = (): boolean => this.#generation === generation && !controller.signal.aborted
    const config = readConfig(adapter, this.account)
    this.#signsIn = adapter.signIn !== undefined && (adapter.usesSignIn?.(config) ?? true)
    const link = createLink(this.#deps, this.account, {
      config,
      signal: controller.signal,
      heard: () => {
        if (isCurrent()) this.#lastHeard = this.#clock.now()
      },
      receive: async (message) => {
        if (!isCurrent()) throw new Error('the connection has ended: the message is not accepted')
        await this.#deps.receive(this.account, adapter, message)
        this.#update({ messagesReceived: this.#status.messagesReceived + 1, lastMessageAt: this.#clock.now() })
      },
    })
    const connection = await this.#openInTime(adapter.open(link), session)
    if (connection === 'stopped') return 'stopped'
    this.#begin(adapter, connection, session)
    try {
      const closed = connection.closed.then(toEnding)
      return await Promise.race([closed, session.ended, this.#silence(adapter.silenceMs, controller.signal)])
    } finally {
      this.#open = undefined
      await this.#settleSends()
      controller.abort(new Error('the connection has ended'))
      this.#deps.changed('disconnected', this.#stop.signal.aborted ? 'stopped' : 'lost')
      await this.#dispose(connection)
    }
  }

  #begin(adapter: ChannelAdapter, connection: ChannelConnection, session: Session): void {
    this.#lastHeard = this.#clock.now()
    this.#unsigned = 0
    this.#update({ state: 'connected', startedAt: this.#clock.now(), lastError: undefined, nextRetryAt: undefined })
    this.#open = {
      account: this.account,
      adapter,
      connection: this.#counted(connection, session.controller.signal),
      signal: session.controller.signal,
      unsigned: () => {
        if (this.#unsigned++ === 0) this.#deps.log.warn(`channel ${this.#name}: ${UNSIGNED}`)
      },
      failed: (error) => {
        const ending = classifyError(error, this.#signsIn)
        this.#update({ failed: this.#status.failed + 1, lastError: this.#mask.text(ending.reason) })
        if (error instanceof UpstreamFailure && error.reason === 'auth') session.end(ending)
      },
    }
    this.#deps.called()
    this.#deps.changed('connected', '')
    this.#attempted.resolve()
  }

  /** Waits for `open` until it takes too long. A connection that opens later is ended at once. */
  async #openInTime(opening: Promise<ChannelConnection>, session: Session): Promise<ChannelConnection | 'stopped'> {
    const { open_timeout_secs: seconds } = this.#deps.settings
    const { channel } = this.account
    let cancel = (): void => undefined
    const late = new Promise<never>((_resolve, reject) => {
      cancel = this.#clock.after(seconds * 1000, () =>
        reject(
          new UpstreamFailure(channel, `${channel} did not connect within ${seconds} seconds`, {
            reason: 'timeout',
            retry: 'later',
          }),
        ),
      )
    })
    try {
      const result = await Promise.race([opening, late, session.ended])
      if (!('reason' in result)) return result
      this.#abandon(opening)
      if (this.#stop.signal.aborted) return 'stopped'
      throw new Refusal('service_unavailable', result.reason)
    } catch (error) {
      this.#abandon(opening)
      throw error
    } finally {
      cancel()
    }
  }
  #abandon(opening: Promise<ChannelConnection>): void {
    opening.then(
      (connection) => this.#dispose(connection),
      () => undefined,
    )
  }

  /** Settles when the platform was not heard for too long; never where that says nothing. */
  #silence(silenceMs: number | undefined, signal: AbortSignal): Promise<Ending> {
    if (silenceMs === undefined) return new Promise(() => undefined)
    return new Promise((resolve) => {
      const check = (): void => {
        const left = Math.min(silenceMs, this.#lastHeard + silenceMs - this.#clock.now())
        if (left <= 0) resolve(retried(`nothing was heard for ${Math.round(silenceMs / 1000)} seconds`))
        else cancel = this.#clock.after(left, check)
      }
      let cancel = this.#clock.after(silenceMs, check)
      signal.addEventListener('abort', () => cancel(), { once: true })
    })
  }

  /** Waits for receipts of messages on their way: sent again, many platforms would show them twice. */
  async #settleSends(): Promise<void> {
    if (this.#sends.size === 0) return
    let cancel = (): void => undefined
    const late = new Promise<void>((resolve) => {
      cancel = this.#clock.after(this.#deps.settings.close_timeout_ms / 3, resolve)
    })
    await Promise.race([Promise.allSettled(this.#sends), late])
    cancel()
  }

  /** An adapter that hangs or throws here costs only itself. */
  async #dispose(connection: ChannelConnection): Promise<void> {
    const { close_timeout_ms: ms } = this.#deps.settings
    let cancel = (): void => undefined
    const late = new Promise<'late'>((resolve) => {
      cancel = this.#clock.after(ms, () => resolve('late'))
    })
    try {
      const outcome = await Promise.race([connection[Symbol.asyncDispose](), late])
      if (outcome === 'late') this.#deps.log.warn(`channel ${this.#name}: the adapter did not end within ${ms} ms`)
    } catch (error) {
      this.#deps.log.warn(`channel ${this.#name}: the adapter failed while it ended`, error)
    } finally {
      cancel()
    }
  }

  #counted(connection: ChannelConnection, signal: AbortSignal): ChannelConnection {
    const send: ChannelConnection['send'] = async (message) => {
      const sending = connection.send(message)
      this.#sends.add(sending)
      const sent = await sending.finally(() => this.#sends.delete(sending))
      this.#update({ messagesSent: this.#status.messagesSent + 1, lastMessageAt: this.#clock.now() })
      return sent
    }
    const { called } = this.#deps
    return new Proxy(connection, {
      get(target, property) {
        const value: unknown = property === 'send' ? send : Reflect.get(target, property, target)
        if (typeof value !== 'function') return value
        return (...args: unknown[]): unknown => {
          const result: unknown = Reflect.apply(value, target, args)
          if (result instanceof Promise)
            result.then(
              () => called(),
              (error: unknown) => {
                if (!signal.aborted) called({ error })
              },
            )
          return result
        }
      },
    })
  }

  #update(part: Partial<ConnectionStatus>): void {
    this.#status = { ...this.#status, ...part }
  }
}

function toEnding(end: ConnectionEnd): Ending {
  return end.retry === 'never' ? ended('misconfigured', end.reason) : retried(end.reason, end.retryAfterSecs)
}
