import { createCipheriv, randomBytes } from 'node:crypto'
import * as nip04 from 'nostr-tools/nip04'
import { npubEncode, nsecEncode } from 'nostr-tools/nip19'
import * as nip44 from 'nostr-tools/nip44'
import { createRumor, createSeal, createWrap } from 'nostr-tools/nip59'
import { matchFilter } from 'nostr-tools/filter'
import type { Filter } from 'nostr-tools/filter'
import { finalizeEvent, generateSecretKey, getEventHash, getPublicKey, verifyEvent } from 'nostr-tools/pure'
import type { Event } from 'nostr-tools/pure'
import { Shown } from './http.ts'
import type { PlatformAnswer, PlatformCall, PlatformServer } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformInput } from './platform.ts'
import { Presence, startSocketServer } from './sockets.ts'
import type { Peer, PeerHandlers } from './sockets.ts'

const MESSAGE_KINDS = new Set([4, 1059])
const MAX_EVENT_BYTES = 65_536
const FILTER_FIELDS = new Set(['ids', 'authors', 'kinds', 'since', 'until', 'limit', '#p', '#e'])

const newKey = () => {
  const secret = generateSecretKey()
  return { secret, public: getPublicKey(secret) }
}
type Key = ReturnType<typeof newKey>
type Rumor = ReturnType<typeof createRumor>

interface Client {
  readonly peer: Peer
  readonly challenge: string
  readonly subscriptions: Map<string, Filter>
  reader?: string
}

export interface FakeNostrOptions {
  /** Events that it sends for one request, whatever was asked for. */
  readonly page?: number
  /** It never answers a request for older messages. */
  readonly hidesOlder?: boolean
  /** It takes events only of whom it knows. */
  readonly closesWrites?: boolean
  /** Another relay, with the same people. */
  readonly beside?: FakeNostr
}

/**
 * A relay (NIP-01) that shows direct messages to their readers alone (NIP-42), and two people who use it. Source:
 * https://github.com/nostr-protocol/nips
 */
export class FakeNostr implements FakePlatform {
  readonly channel = 'nostr'
  readonly bot: Key
  readonly ada: Key
  readonly clara: Key
  readonly secrets: readonly string[]
  readonly redelivers = true
  readonly faults: ReadonlySet<PlatformFault['kind']> = new Set([
    'server_error',
    'reset',
    'lost_answer',
    'permanent',
    'auth',
  ])
  readonly typing = []
  readonly reactions = []
  readonly violations: string[] = []
  /** Everything that was published here. */
  readonly events: Event[] = []
  readonly #options: FakeNostrOptions
  readonly #clients = new Set<Client>()
  readonly #listening = new Presence<Client>()
  readonly #older = new Presence<Client>()
  readonly #shown = new Shown()
  readonly #rumors = new Map<string, Rumor>()
  readonly #files = new Map<string, Uint8Array>()
  #server: PlatformServer | undefined
  #refusal: string | undefined
  #ignoresTimes = false
  #hidesLists = false
  #next = 0

  private constructor(options: FakeNostrOptions) {
    this.#options = options
    const { bot = newKey(), ada = newKey(), clara = newKey() } = options.beside ?? {}
    this.bot = bot
    this.ada = ada
    this.clara = clara
    this.secrets = [Buffer.from(this.bot.secret).toString('hex'), nsecEncode(this.bot.secret)]
  }
  static async start(options: FakeNostrOptions = {}): Promise<FakeNostr> {
    const fake = new FakeNostr(options)
    fake.#server = await startSocketServer(
      (call) => fake.#handle(call),
      (peer) => fake.#accept(peer),
    )
    for (const person of [fake.ada, fake.clara]) fake.listRelays(person, [fake.url])
    return fake
  }

  get url(): string {
    return `${this.#server?.origin.replace('http', 'ws')}/`
  }
  get person() {
    return this.ada.public
  }
  get chats() {
    return { direct: this.ada.public, group: [this.ada.public, this.clara.public].toSorted().join(',') }
  }
  get config() {
    return { token: nsecEncode(this.bot.secret), relays: [this.url] }
  }
  get wrongConfig() {
    return { ...this.config, token: Buffer.from(generateSecretKey()).toString('hex') }
  }
  get sent() {
    return this.#shown.sent
  }
  waitForSent(count: number) {
    return this.#shown.waitForSent(count)
  }
  fail(fault: PlatformFault): void {
    this.#shown.fail(fault)
  }
  /** What the relay says of the next message. */
  refuseNext(words: string): void {
    this.#refusal = words
  }
  /** Whether it refuses to tell where people read. */
  hideLists(areHidden: boolean): void {
    this.#hidesLists = areHidden
  }
  /** Sends what is stored, whenever it was written. */
  ignoreTimes(): void {
    this.#ignoresTimes = true
  }
  setWebhook(): void {}
  async waitForListener(): Promise<void> {
    await this.#listening.wait()
  }
  /** Settles when somebody asked for older messages. */
  async waitForOlder(): Promise<void> {
    await this.#older.wait()
  }
  async disconnect(): Promise<void> {
    for (const client of this.#clients) {
      this.#listening.remove(client)
      client.peer.cut()
    }
    this.#clients.clear()
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const rumor = this.#rumors.get(input.redeliveryOf ?? '') ?? this.rumorOf(input)
    this.#rumors.set(rumor.id, rumor)
    this.publish(this.wrap(rumor, input.isOwn ? this.bot : this.ada))
    return rumor.id
  }
  /** The envelope of a message for the bot. */
  wrap(rumor: Rumor, author: Key, sealer: Key = author): Event {
    return createWrap(createSeal(rumor, sealer.secret, this.bot.public), this.bot.public)
  }
  rumorOf(input: PlatformInput & { readonly writtenAt?: number }): Rumor {
    const { text, isGroup, isOwn, mentionsBot, replyTo, files = [] } = input
    const author = isOwn ? this.bot : this.ada
    const others = [this.bot, ...(isGroup ? [this.clara] : []), ...(isOwn ? [this.ada] : [])]
    const tags = others.filter(({ public: key }) => key !== author.public).map(({ public: key }) => ['p', key])
    if (replyTo !== undefined) tags.push(['e', replyTo, this.url])
    const [file] = files
    // As everybody's clock may differ, and messages of one second have no order.
    const created_at = input.writtenAt ?? this.seconds() + this.#next++
    if (file) {
      const { url, key, nonce } = this.#keepFile(file.bytes)
      tags.push(['file-type', file.mime], ['encryption-algorithm', 'aes-gcm'])
      tags.push(['decryption-key', key], ['decryption-nonce', nonce], ['size', String(file.bytes.length)])
      return createRumor({ kind: 15, content: url, tags, created_at }, author.secret)
    }
    const content = mentionsBot ? `nostr:${npubEncode(this.bot.public)} ${text}` : text
    return createRumor({ kind: 14, content, tags, created_at }, author.secret)
  }
  /** A message as old apps send it. */
  deliverLegacy(text: string): string {
    const content = nip04.encrypt(this.ada.secret, this.bot.public, text)
    const created_at = this.seconds() + this.#next++
    const event = finalizeEvent({ kind: 4, created_at, tags: [['p', this.bot.public]], content }, this.ada.secret)
    this.publish(event)
    return event.id
  }
  listRelays(person: Key, urls: readonly string[]): void {
    const tags = urls.map((url) => ['relay', url])
    this.publish(finalizeEvent({ kind: 10_050, created_at: this.seconds(), tags, content: '' }, person.secret))
  }
  seconds(): number {
    return Math.floor(Date.now() / 1000)
  }
  /** Stores an event, and sends it to everybody who asked for such. */
  publish(event: Event): void {
    if (event.kind === 10_050) {
      const older = this.events.findIndex(({ kind, pubkey }) => kind === event.kind && pubkey === event.pubkey)
      if (older !== -1) this.events.splice(older, 1)
    }
    this.events.push(event)
    for (const { peer, subscriptions } of this.#clients)
      for (const [id, filter] of subscriptions) if (matchFilter(filter, event)) peer.send(['EVENT', id, event])
  }
  /** Sends any frame to everybody. */
  sendFrame(frame: unknown): void {
    for (const { peer } of this.#clients) peer.send(frame)
  }
  /** Ends every subscription, as a relay may at any time. */
  closeSubscriptions(words: string): void {
    for (const { peer, subscriptions } of this.#clients)
      for (const id of subscriptions.keys()) peer.send(['CLOSED', id, words])
  }

  #keepFile(bytes: Uint8Array) {
    const key = randomBytes(32)
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', key, nonce)
    const path = `/file-${this.#files.size}`
    this.#files.set(path, Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]))
    return { url: `${this.#server?.origin}${path}`, key: key.toString('hex'), nonce: nonce.toString('hex') }
  }
  #handle({ url, headers }: PlatformCall): PlatformAnswer {
    if (headers.authorization !== undefined) this.violations.push('credentials for the host of a file')
    const body = this.#files.get(url.pathname)
    return body ? { status: 200, body, headers: { 'content-type': 'application/octet-stream' } } : { status: 404 }
  }

  #accept(peer: Peer): PeerHandlers {
    const client: Client = { peer, challenge: randomBytes(16).toString('hex'), subscriptions: new Map() }
    this.#clients.add(client)
    peer.send(['AUTH', client.challenge])
    return {
      frame: (frame) => this.#read(client, frame),
      closed: () => {
        this.#clients.delete(client)
        this.#listening.remove(client)
      },
    }
  }

  #read(client: Client, frame: unknown): void {
    const [type, first, second] = Array.isArray(frame) ? (frame as readonly unknown[]) : []
    if (type === 'AUTH') return this.#authenticate(client, first as Event)
    if (type === 'REQ') return this.#request(client, String(first), second as Filter)
    if (type === 'EVENT') return this.#take(client, first as Event)
    if (type === 'CLOSE' && client.subscriptions.delete(String(first))) return
    this.violations.push(`a frame of an unknown kind: ${JSON.stringify(frame)}`)
  }

  #authenticate(client: Client, event: Event): void {
    const { peer, challenge } = client
    const tags = Object.fromEntries(event.tags)
    const isFresh = Math.abs(event.created_at - this.seconds()) < 600
    if (!verifyEvent({ ...event }) || event.kind !== 22_242 || !isFresh) return this.#refuse(peer, event, 'the proof')
    if (tags['challenge'] !== challenge || tags['relay'] !== this.url)
      return this.#refuse(peer, event, 'the proof is for another connection')
    if (event.pubkey !== this.bot.public)
      return peer.send(['OK', event.id, false, 'restricted: this relay is for its members'])
    client.reader = event.pubkey
    peer.send(['OK', event.id, true, ''])
  }

  #request(client: Client, id: string, filter: Filter): void {
    const { peer, reader, subscriptions } = client
    const unknown = Object.keys(filter).find((name) => !FILTER_FIELDS.has(name))
    if (unknown !== undefined || id === '' || id.length > 64) {
      this.violations.push(`a request with ${unknown ?? 'a wrong id'}`)
      return peer.send(['CLOSED', id, 'unsupported: filter'])
    }
    const isPrivate = filter.kinds?.some((kind) => MESSAGE_KINDS.has(kind)) === true
    const readers = [...(filter['#p'] ?? []), ...(filter.authors ?? [])]
    if (isPrivate && (reader === undefined || !readers.includes(reader)))
      return peer.send(['CLOSED', id, 'auth-required: messages are for their readers'])
    if (this.#hidesLists && filter.kinds?.includes(10_050)) return peer.send(['CLOSED', id, 'error: no database'])
    if (this.#options.hidesOlder === true && filter.until !== undefined) return this.#older.set(client)
    const asked = this.#ignoresTimes ? { ...filter, since: 0, until: Infinity } : filter
    const found = this.events.filter((event) => matchFilter(asked, event)).toSorted(newestFirst)
    const limit = Math.min(filter.limit ?? Infinity, this.#options.page ?? 500)
    for (const event of found.slice(0, limit)) peer.send(['EVENT', id, event])
    subscriptions.set(id, filter)
    peer.send(['EOSE', id])
    if (isPrivate) this.#listening.set(client)
  }

  #take(client: Client, event: Event): void {
    const { peer, reader } = client
    if (!verifyEvent({ ...event })) return this.#refuse(peer, event, 'the id or the signature is wrong')
    if (JSON.stringify(event).length > MAX_EVENT_BYTES) return this.#refuse(peer, event, 'the event is too large')
    if (event.created_at > this.seconds() + 900) return this.#refuse(peer, event, 'the event is of the future')
    if (this.#options.closesWrites === true && reader === undefined)
      return peer.send(['OK', event.id, false, 'auth-required: only members write here'])
    if (event.kind === 10_050 && event.pubkey === this.bot.public) return this.#accepted(client, event)
    if (event.kind === 4) return this.#takeLegacy(client, event)
    if (event.kind === 1059) return this.#takeWrap(client, event)
    return this.#refuse(peer, event, `an event of kind ${event.kind} in public`)
  }

  #takeLegacy(client: Client, event: Event): void {
    const tags = Object.fromEntries(event.tags)
    const text = nip04.decrypt(this.ada.secret, event.pubkey, event.content)
    const replyTo = tags['e']
    this.#show(client, event, { id: event.id, chatId: this.ada.public, text, replyTo })
  }

  #takeWrap(client: Client, wrap: Event): void {
    const reader = wrap.tags[0]?.[1]
    const known = [this.bot, this.ada, this.clara].find(({ public: key }) => key === reader)
    if (!known || wrap.tags.length !== 1) return this.#refuse(client.peer, wrap, 'the tags of the wrap')
    if (wrap.pubkey === this.bot.public) return this.#refuse(client.peer, wrap, 'the wrap tells who sends it')
    const seal = unwrapped(wrap, known) as Event
    const rumor = unwrapped(seal, known) as Rumor & { readonly sig?: string }
    const problem = problemOf(seal, rumor)
    if (problem !== undefined) return this.#refuse(client.peer, wrap, problem)
    const members = [rumor.pubkey, ...rumor.tags.filter(([name]) => name === 'p').map(([, key = '']) => key)]
    const chatId = members
      .filter((key) => key !== this.bot.public)
      .toSorted()
      .join(',')
    const replyTo = rumor.tags.find(([name]) => name === 'e')?.[1]
    // The copy for the bot itself, and the second one for a group.
    if (known !== this.ada) return this.#accepted(client, wrap)
    this.#show(client, wrap, { id: rumor.id, chatId, text: rumor.content, replyTo })
  }

  #show(
    client: Client,
    event: Event,
    shown: { id: string; chatId: string; text: string; replyTo: string | undefined },
  ): void {
    const { peer } = client
    const fault = this.#shown.takeFault()
    const words = this.#refusal ?? (fault && REFUSALS[fault.kind])
    this.#refusal = undefined
    if (fault?.kind === 'reset') return peer.cut()
    if (words !== undefined) return peer.send(['OK', event.id, false, words])
    this.#shown.show({ ...shown, files: [], buttons: [], key: shown.id })
    if (fault?.kind !== 'lost_answer') return this.#accepted(client, event)
    this.publish(event)
    peer.cut()
  }

  #accepted({ peer }: Client, event: Event): void {
    this.publish(event)
    peer.send(['OK', event.id, true, ''])
  }
  #refuse(peer: Peer, event: Event, what: string): void {
    this.violations.push(what)
    peer.send(['OK', event.id, false, `invalid: ${what}`])
  }
}

const REFUSALS: Readonly<Partial<Record<PlatformFault['kind'], string>>> = {
  server_error: 'error: could not connect to the database',
  permanent: 'blocked: not accepted here',
  auth: 'restricted: you are no member any more',
}

const newestFirst = (one: Event, other: Event): number =>
  other.created_at - one.created_at || (one.id < other.id ? -1 : 1)

function unwrapped({ pubkey, content }: Event, { secret }: Key): unknown {
  return JSON.parse(nip44.decrypt(content, nip44.getConversationKey(secret, pubkey)))
}

function problemOf(seal: Event, rumor: Rumor & { readonly sig?: string }): string | undefined {
  if (seal.kind !== 13 || seal.tags.length > 0 || !verifyEvent({ ...seal })) return 'the seal is wrong'
  if (rumor.kind !== 14 || rumor.pubkey !== seal.pubkey) return 'the message is not of whom sealed it'
  if (rumor.sig !== undefined) return 'the message is signed, and could become public'
  return rumor.id === getEventHash(rumor) ? undefined : 'the id of the message is wrong'
}
