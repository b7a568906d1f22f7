import { hash, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { ConsolaInstance } from 'consola'
import type { Client } from 'pg'
import type { Broadcast, BroadcastListener } from './broadcast.ts'
import { BroadcastCipher } from './broadcast-cipher.ts'
import { decodeMessage, encodeEntries, encodeEntry, encodeReference, MAX_TEXT_BYTES } from './broadcast-message.ts'
import type { BroadcastMessage } from './broadcast-message.ts'
import type { Migration, PluginDatabase, Statement } from './database.ts'
import { messageOf } from '../errors/message.ts'

export interface PostgresBroadcastDeps {
  readonly daemonId: string
  /** A new connection of its own. */
  readonly connect: () => Promise<Client>
  readonly sql: PluginDatabase
  /** All daemons that are to hear each other have the same one: 32 bytes. */
  readonly key: Uint8Array
  readonly log: ConsolaInstance
}

/** For `GET /api/metrics`. */
export interface BroadcastFigures {
  readonly connected: boolean
  readonly sent: number
  readonly heard: number
  /** Not sent, because the connection was lost or too much waited. */
  readonly dropped: number
  /** Notifications that no daemon with the key of the vault has sent, or in a version that is not known here. */
  readonly ignored: number
  readonly reconnects: number
}

/** Messages that are too large for a notification. */
export const broadcastMigrations: readonly Migration[] = [
  {
    id: '001-large',
    sql:
      'CREATE TABLE core_broadcast (id TEXT PRIMARY KEY, body TEXT NOT NULL, created_at INTEGER NOT NULL);' +
      'CREATE INDEX core_broadcast_time ON core_broadcast (created_at);',
  },
]

/** What is sent at once waits so long for more, because every notification is a transaction. */
const SEND_DELAY_MS = 3
/** Of messages that wait to be sent. What is more is lost, and its receivers are told so. */
const MAX_OUTBOX_BYTES = 8_000_000
/** Of notifications that wait for a large one before them to be read. */
const MAX_INBOX = 10_000
/** A connection that is cut without a word is noticed by asking. */
const PROBE_MS = 5_000
const ANSWER_MS = 5_000
const RETRY_MS = 100
const MAX_RETRY_MS = 5_000
/** Whoever has not read a large message by then was told that something is missing. */
const KEEP_LARGE_MS = 600_000
const CLEAN_EVERY_MS = 60_000

/** Broadcast over `LISTEN` and `NOTIFY`, on a connection of its own. */
export class PostgresBroadcast implements Broadcast, AsyncDisposable {
  readonly isShared = true
  readonly daemonId: string
  readonly #deps: PostgresBroadcastDeps
  readonly #cipher: BroadcastCipher
  readonly #listeners = new Map<string, Set<BroadcastListener>>()
  readonly #figures = { connected: false, sent: 0, heard: 0, dropped: 0, ignored: 0, reconnects: 0 }
  /** That of all daemons with this database and schema; a daemon's own ends in its id. */
  #channel = ''
  #client: Client | undefined
  #closed = new AbortController()
  #reconnecting: Promise<void> | undefined
  #probe: NodeJS.Timeout | undefined
  #told = 0
  #cleanedAt = -Infinity

  #outbox = new Map<string, string[]>()
  #outboxBytes = 0
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<void> | undefined

  #inbox: BroadcastMessage[] = []
  #reading = false

  private constructor(deps: PostgresBroadcastDeps) {
    this.#deps = deps
    this.daemonId = deps.daemonId
    this.#cipher = new BroadcastCipher(deps.key)
  }

  /** Listens before it settles. Rejects when the first connection fails. */
  static async open(deps: PostgresBroadcastDeps): Promise<PostgresBroadcast> {
    const broadcast = new PostgresBroadcast(deps)
    await broadcast.#listen()
    broadcast.#probe = setInterval(() => broadcast.#flush(), PROBE_MS)
    return broadcast
  }

  get figures(): BroadcastFigures {
    return this.#figures
  }

  tell(topic: string, data: unknown): readonly Statement[] {
    // Two equal notifications of one transaction would be heard as one.
    const number = ++this.#told
    const entry = encodeEntry(topic, data)
    const text = encodeEntries(this.daemonId, [entry], number)
    const written = (): void => void this.#figures.sent++
    if (Buffer.byteLength(text) <= MAX_TEXT_BYTES)
      return [{ ...this.#deps.sql.sql`SELECT pg_notify(${this.#channel}, ${this.#seal(text)})`, written }]
    const id = randomUUID()
    return [
      this.#insertLarge(id, `[${entry}]`),
      {
        ...this.#deps.sql.sql`SELECT pg_notify(${this.#channel}, ${this.#seal(encodeReference(this.daemonId, id))})`,
        written: () => {
          written()
          this.#cleanUp()
        },
      },
    ]
  }

  send(topic: string, data: unknown, to?: string): void {
    if (to === this.daemonId || (to !== undefined && !/^[\w-]{1,40}$/.test(to))) return
    if (!this.#client) return this.#drop(1)
    const channel = to === undefined ? this.#channel : `${this.#channel}_${to}`
    const entry = encodeEntry(topic, data)
    if (this.#outboxBytes + entry.length > MAX_OUTBOX_BYTES) return this.#drop(1)
    this.#outboxBytes += entry.length
    const waiting = this.#outbox.get(channel)
    if (waiting) waiting.push(entry)
    else this.#outbox.set(channel, [entry])
    this.#timer ??= setTimeout(() => this.#flush(), SEND_DELAY_MS)
  }

  on(topic: string, listener: BroadcastListener): Disposable {
    const listeners = this.#listeners.get(topic) ?? new Set()
    this.#listeners.set(topic, listeners.add(listener))
    return {
      [Symbol.dispose]: () => {
        listeners.delete(listener)
        if (listeners.size === 0 && this.#listeners.get(topic) === listeners) this.#listeners.delete(topic)
      },
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#probe)
    await this.#flushing
    this.#flush()
    await this.#flushing
    this.#closed.abort()
    await this.#reconnecting
    clearTimeout(this.#timer)
    const client = this.#client
    this.#client = undefined
    // It is closed one way or the other.
    if (client) await this.#inTime(client, client.end()).catch(() => undefined)
  }

  async #listen(): Promise<void> {
    const client = await this.#deps.connect()
    client.on('error', (error) => this.#lose(client, error))
    client.on('end', () => this.#lose(client, new Error('the server closed it')))
    client.on('notification', ({ channel, payload = '' }) => this.#receive(channel, payload))
    try {
      const schema = await client.query<{ name: string | null }>('SELECT current_schema() AS name')
      this.#channel = `svc_${hash('sha256', schema.rows[0]?.name ?? '').slice(0, 8)}`
      await client.query(`LISTEN "${this.#channel}"; LISTEN "${this.#channel}_${this.daemonId}"`)
    } catch (error) {
      client.connection.stream.destroy()
      throw error
    }
    this.#client = client
    this.#figures.connected = true
  }

  #lose(client: Client, error: Error): void {
    if (this.#client !== client) return
    this.#client = undefined
    this.#figures.connected = false
    client.connection.stream.destroy()
    this.#drop([...this.#outbox.values()].flat().length)
    this.#outbox.clear()
    this.#outboxBytes = 0
    if (this.#closed.signal.aborted) return
    this.#deps.log.warn('the connection that hears other daemons broke; connecting again', { error: error.message })
    this.#reconnecting ??= this.#reconnect().finally(() => (this.#reconnecting = undefined))
  }

  async #reconnect(): Promise<void> {
    for (let wait = RETRY_MS; !this.#closed.signal.aborted; wait = Math.min(wait * 2, MAX_RETRY_MS)) {
      try {
        await this.#listen()
      } catch (error) {
        this.#deps.log.debug('not connected yet', { error: messageOf(error) })
        // Ends early when this is closed.
        await delay(wait, undefined, { signal: this.#closed.signal }).catch(() => undefined)
        continue
      }
      this.#figures.reconnects++
      this.#miss()
      return
    }
  }

  /** Sends what waits. With nothing to send it asks whether the server is there. */
  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const client = this.#client
    if (!client || this.#flushing) return
    const outbox = this.#outbox
    this.#outbox = new Map()
    this.#outboxBytes = 0
    this.#flushing = this.#notify(client, outbox).finally(() => {
      this.#flushing = undefined
      if (this.#outbox.size > 0) this.#timer ??= setTimeout(() => this.#flush(), SEND_DELAY_MS)
    })
  }

  async #notify(client: Client, outbox: ReadonlyMap<string, readonly string[]>): Promise<void> {
    const channels: string[] = []
    const payloads: string[] = []
    const large: { readonly id: string; readonly body: string }[] = []
    let count = 0
    for (const [channel, entries] of outbox) {
      count += entries.length
      for (const group of groupEntries(entries)) {
        const text = encodeEntries(this.daemonId, group)
        channels.push(channel)
        if (Buffer.byteLength(text) <= MAX_TEXT_BYTES) payloads.push(this.#seal(text, channel))
        else {
          const id = randomUUID()
          large.push({ id, body: `[${group.join(',')}]` })
          payloads.push(this.#seal(encodeReference(this.daemonId, id), channel))
        }
      }
    }
    try {
      if (large.length > 0) {
        await this.#deps.sql.batch(large.map(({ id, body }) => this.#insertLarge(id, body)))
        this.#cleanUp()
      }
      await this.#inTime(client, client.query({ name: 'notify', text: NOTIFY, values: [channels, payloads] }))
      this.#figures.sent += count
    } catch (error) {
      this.#drop(count)
      this.#deps.log.debug('messages to other daemons were lost', { count, error: messageOf(error) })
    }
  }

  /** A server that does not answer in time is taken for gone. */
  async #inTime<T>(client: Client, answer: Promise<T>): Promise<T> {
    const timer = setTimeout(
      () => client.connection.stream.destroy(new Error('the server did not answer in time')),
      ANSWER_MS,
    )
    try {
      return await answer
    } finally {
      clearTimeout(timer)
    }
  }

  #drop(count: number): void {
    this.#figures.dropped += count
  }

  #seal(text: string, channel = this.#channel): string {
    return this.#cipher.seal(channel, text)
  }

  /** Anybody who may connect to the database may have sent it. */
  #receive(channel: string, payload: string): void {
    const text = this.#cipher.open(channel, payload)
    const message = text === undefined ? undefined : decodeMessage(text)
    if (!message) this.#figures.ignored++
    else if (message.from !== this.daemonId) {
      if (!this.#reading && message.entries) return this.#deliver(message.from, message.entries)
      if (this.#inbox.length >= MAX_INBOX) {
        this.#inbox = []
        return this.#miss()
      }
      this.#inbox.push(message)
      if (!this.#reading) void this.#read()
    }
  }

  /** Large messages are read one after the other, and what came after them waits. */
  async #read(): Promise<void> {
    this.#reading = true
    for (let message = this.#inbox.shift(); message; message = this.#inbox.shift()) {
      const { from, entries, reference } = message
      const found = entries ?? (await this.#readLarge(reference ?? ''))
      if (found) this.#deliver(from, found)
      else this.#miss()
    }
    this.#reading = false
  }

  async #readLarge(id: string): Promise<BroadcastMessage['entries']> {
    try {
      const row = await this.#deps.sql.one<{ body: string }>`SELECT body FROM core_broadcast WHERE id = ${id}`
      const body = row && this.#cipher.open(id, row.body)
      return body === undefined ? undefined : decodeMessage(`{"v":1,"from":"-","m":${body}}`)?.entries
    } catch (error) {
      this.#deps.log.debug('a message of another daemon cannot be read', { error: messageOf(error) })
      return undefined
    }
  }

  #deliver(from: string, entries: NonNullable<BroadcastMessage['entries']>): void {
    for (const [topic, data] of entries) {
      this.#figures.heard++
      this.#each(this.#listeners.get(topic), (listener) => listener.heard(data, from))
    }
  }
  #miss(): void {
    for (const listeners of this.#listeners.values()) this.#each(listeners, (listener) => listener.missed())
  }
  #each(listeners: ReadonlySet<BroadcastListener> | undefined, tell: (listener: BroadcastListener) => void): void {
    for (const listener of listeners ? [...listeners] : []) {
      try {
        tell(listener)
      } catch (error) {
        this.#deps.log.error('a message of another daemon could not be handled', error)
      }
    }
  }

  #insertLarge(id: string, body: string): Statement {
    return this.#deps.sql.sql`INSERT INTO core_broadcast (id, body, created_at)
      VALUES (${id}, ${this.#cipher.seal(id, body)}, CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT))`
  }
  #cleanUp(): void {
    const now = performance.now()
    if (now - this.#cleanedAt < CLEAN_EVERY_MS) return
    this.#cleanedAt = now
    this.#deps.sql.run`DELETE FROM core_broadcast
      WHERE created_at < CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) - ${KEEP_LARGE_MS}`.catch(
      (error: unknown) => this.#deps.log.debug('old messages were not removed', { error: messageOf(error) }),
    )
  }
}

const NOTIFY = 'SELECT pg_notify(m.channel, m.payload) FROM unnest($1::text[], $2::text[]) AS m (channel, payload)'

/** As many entries as fit into one notification; one that does not fit is alone. */
function* groupEntries(entries: readonly string[]): Generator<readonly string[]> {
  let group: string[] = []
  let bytes = 0
  for (const entry of entries) {
    const size = Buffer.byteLength(entry) + 1
    if (group.length > 0 && bytes + size > MAX_TEXT_BYTES - 100) {
      yield group
      group = []
      bytes = 0
    }
    group.push(entry)
    bytes += size
  }
  if (group.length > 0) yield group
}
