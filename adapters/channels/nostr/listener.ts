import { createHash } from 'node:crypto'
import { pause, runInBackground, SavedPosition } from 'svc/channels'
import type { Background, ChannelLink, ConnectionEnd } from 'svc/channels'
import type { NostrConfig } from './config.ts'
import type { Identity } from './identity.ts'
import type { Inbox, OpenedMessage } from './inbox.ts'
import { Relay } from './relay.ts'
import { KIND } from './wire.ts'
import type { Event, Filter } from './wire.ts'

/** Envelopes carry a time up to two days before the true one; clocks differ. */
const REACH_BACK_SECS = 2 * 86_400 + 900
const PAGE = 500
/** What is older was written while the daemon was away for very long, and is left out. */
const MAX_PAGES = 40
const MAX_CATCH_UP_CHARS = 20_000_000
const RETRY_MS = 60_000
const START = 'start'

/** Listens to all relays for as long as one of them is connected. */
export class RelayListener {
  readonly #link: ChannelLink<NostrConfig>
  readonly #identity: Identity
  readonly #inbox: Inbox
  readonly #open = new Map<string, Relay>()
  readonly #away = new Map<string, string>()
  readonly #positions: ReadonlyMap<string, SavedPosition>
  #start = 0

  constructor(link: ChannelLink<NostrConfig>, identity: Identity, inbox: Inbox) {
    this.#link = link
    this.#identity = identity
    this.#inbox = inbox
    this.#positions = new Map(link.config.relays.map((url) => [url, new SavedPosition(link, positionKey(url))]))
  }

  /** The relays that are connected. */
  get relays(): readonly Relay[] {
    return [...this.#open.values()]
  }
  relay(url: string): Relay | undefined {
    return this.#open.get(url)
  }
  warnings(): readonly string[] {
    return [...this.#away].map(([url, reason]) => `${new URL(url).host} is not connected: ${reason}`)
  }

  /** Settles when a relay has taken the bot. Throws when none does. */
  async open(): Promise<Background> {
    this.#start = await this.#readStart()
    const urls = [...new Set(this.#link.config.relays)]
    const results = await Promise.allSettled(urls.map((url) => this.#connect(url)))
    const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
    if (failures.length === results.length) throw worstOf(failures)
    for (const [index, result] of results.entries())
      if (result.status === 'rejected') this.#away.set(urls[index] ?? '', reasonOf(result.reason))
    return runInBackground(this.#link, async (signal) => {
      await this.#catchUp(signal)
      return this.#watch(urls, signal)
    })
  }

  /** Takes as long as there are messages, and anybody may write as many as they like. */
  async #catchUp(signal: AbortSignal): Promise<void> {
    const stop = (): void => void this.#closeAll()
    signal.addEventListener('abort', stop, { once: true })
    try {
      await this.#listen(this.relays)
    } catch (error) {
      await this.#closeAll()
      throw error
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  /** The first time it is now. What was written before is never read. */
  async #readStart(): Promise<number> {
    const stored = await this.#link.state.read(START)
    if (stored !== undefined) return Number(stored)
    const now = this.#seconds()
    await this.#link.state.write(START, String(now))
    return now
  }

  async #connect(url: string): Promise<Relay> {
    const relay = await Relay.open(this.#link, this.#identity, url, true)
    try {
      // A relay that asks who comes does so first, and serves less until it knows.
      await relay.query({ kinds: [KIND.messageRelays], authors: [this.#identity.publicKey], limit: 1 })
      await relay.authenticate()
    } catch (error) {
      await relay.close()
      this.#link.signal.throwIfAborted()
      throw error
    }
    this.#open.set(url, relay)
    this.#away.delete(url)
    return relay
  }

  /** Subscribes at these relays, and passes on what was missed before what is new. */
  async #listen(relays: readonly Relay[]): Promise<void> {
    const caughtUp = Promise.withResolvers<void>()
    // Told by this function; events only wait for it.
    caughtUp.promise.catch(() => undefined)
    try {
      const now = this.#seconds()
      const missed = await Promise.allSettled(relays.map((relay) => this.#readMissed(relay, caughtUp.promise)))
      const failures = missed.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
      if (failures.length === relays.length) throw worstOf(failures)
      await this.#inbox.receiveStored(
        missed.flatMap((result) => (result.status === 'fulfilled' ? result.value : [])),
        this.#start,
      )
      caughtUp.resolve()
      for (const [index, relay] of relays.entries()) {
        const result = missed[index]
        if (result?.status === 'rejected') await this.#drop(relay, result.reason)
        else this.#positions.get(relay.url)?.set(String(now))
      }
    } catch (error) {
      caughtUp.reject(error)
      throw error
    }
  }

  async #readMissed(relay: Relay, caughtUp: Promise<void>): Promise<readonly OpenedMessage[]> {
    const position = this.#positions.get(relay.url)
    const since = Math.max(0, Number((await position?.read()) ?? this.#start) - REACH_BACK_SECS)
    const filter = { kinds: [KIND.wrap, KIND.legacyMessage], '#p': [this.#identity.publicKey], since, limit: PAGE }
    const first = await relay.subscribe(filter, async (event) => {
      await caughtUp
      await this.#inbox.receive(event)
      position?.set(String(this.#seconds()))
    })
    return this.#readPages(relay, filter, first)
  }

  /** Relays limit what they send at once, each as it likes: a page with nothing new is the last one. */
  async #readPages(relay: Relay, filter: Filter, first: readonly Event[]): Promise<readonly OpenedMessage[]> {
    const opened = new Map<string, OpenedMessage>()
    const known = new Set<string>()
    let page = first
    let chars = 0
    for (let pages = 0; pages < MAX_PAGES && chars < MAX_CATCH_UP_CHARS; pages++) {
      const fresh = page.filter(({ id }) => !known.has(id))
      if (fresh.length === 0) return [...opened.values()]
      for (const event of fresh) {
        known.add(event.id)
        chars += event.content.length
        const message = await this.#inbox.open(event)
        if (message) opened.set(event.id, message)
      }
      const until = fresh.reduce((oldest, { created_at: time }) => Math.min(oldest, time), Infinity)
      page = await relay.query({ ...filter, until })
    }
    this.#link.log.warn('There were too many messages on Nostr meanwhile: the oldest ones are left out', {
      relay: relay.host,
    })
    return [...opened.values()]
  }

  /** Lasts until no relay is left, and tells how the last one ended. */
  async #watch(urls: readonly string[], signal: AbortSignal): Promise<ConnectionEnd> {
    const end = Promise.withResolvers<ConnectionEnd>()
    const ended = new AbortController()
    const stop = AbortSignal.any([signal, ended.signal])
    signal.addEventListener('abort', () => end.resolve({ retry: 'later', reason: 'the connection ended' }))
    const keeping = urls.map((url) => this.#keep(url, stop, end.resolve))
    const result = await end.promise
    ended.abort()
    await this.#closeAll()
    await Promise.all(keeping)
    await this.#flush()
    return result
  }

  /** Holds the connection to one relay: while others are there, a lost one is tried again. */
  async #keep(url: string, signal: AbortSignal, ended: (end: ConnectionEnd) => void): Promise<void> {
    for (;;) {
      const relay = this.#open.get(url)
      if (relay) {
        const end = await relay.ended
        this.#open.delete(url)
        this.#away.set(url, end.reason)
        if (this.#open.size === 0) return ended(end)
      }
      if (!(await pause(this.#link, RETRY_MS, signal))) return
      await this.#reconnect(url)
    }
  }

  async #reconnect(url: string): Promise<void> {
    try {
      await this.#listen([await this.#connect(url)])
    } catch (error) {
      const relay = this.#open.get(url)
      if (relay) await this.#drop(relay, error)
      else this.#away.set(url, reasonOf(error))
    }
  }

  async #drop(relay: Relay, reason: unknown): Promise<void> {
    this.#open.delete(relay.url)
    this.#away.set(relay.url, reasonOf(reason))
    await relay.close()
  }

  async #closeAll(): Promise<void> {
    await Promise.all(this.relays.map((relay) => relay.close()))
  }

  async #flush(): Promise<void> {
    try {
      for (const position of this.#positions.values()) await position.flush()
    } catch (error) {
      // An older position holds: what came after it is read again.
      this.#link.log.warn('The position in the messages of Nostr could not be saved', { error })
    }
  }

  #seconds(): number {
    return Math.floor(this.#link.now() / 1000)
  }
}

function positionKey(url: string): string {
  return `position-${createHash('sha256').update(url).digest('hex').slice(0, 16)}`
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** The failure that may pass, if there is one: then another attempt may help. */
function worstOf(failures: readonly unknown[]): unknown {
  return failures.find((failure) => Object(failure).retry !== 'never') ?? failures[0]
}
