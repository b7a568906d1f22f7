import { randomUUID } from 'node:crypto'
import { client, xml } from '@xmpp/client'
import type { Client } from '@xmpp/client'
import { Refusal, SerialQueue, UpstreamFailure } from 'svc/sdk'
import type { Connection } from 'svc/sdk'
import { runInBackground } from 'svc/channels'
import type {
  Background,
  ChannelConnection,
  Destination,
  JsonObject,
  OutboundAttachment,
  OutboundMessage,
  SentMessage,
} from 'svc/channels'
import type { Link } from './config.ts'
import { bareOf, decodeMessage, isRoom } from './decode.ts'
import { failureOf, refusalOf } from './errors.ts'
import { isOfServer } from './shared-file.ts'
import { connectTo, socketClassFor } from './stream.ts'
import { FileTooLarge, Uploads } from './upload.ts'
import type { Element } from './wire.ts'

const PING_MS = 60_000
export const SILENCE_MS = PING_MS + 30_000
const ANSWER_MS = 20_000
const END_MS = 500
const STREAM_MANAGEMENT = 'urn:xmpp:sm:3'
/** The code of a presence that is the bot's own (XEP-0045). */
const SELF = '110'
/** The subject of the warning of a file that could not be sent. */
const UPLOAD = 'upload'
const ADDRESS = /^[^\s@/<>"&']+@[^\s@/<>"&']+(?:\/[^<>&]+)?$/

export async function openXmpp(link: Link): Promise<ChannelConnection> {
  const session = await XmppSession.open(link, link.config.resource)
  await session.join()
  return session
}

/** Under another resource, so that the open connection stays. */
export async function probeXmpp(link: Link): Promise<{ readonly account: string }> {
  await using _session = await XmppSession.open(link, `probe-${randomUUID()}`)
  return { account: link.config.jid }
}

class XmppSession implements ChannelConnection {
  readonly closed: ChannelConnection['closed']
  readonly #link: Link
  readonly #connection: Connection
  readonly #client: Client
  readonly #domain: string
  readonly #background: Background
  readonly #incoming = new SerialQueue()
  readonly #outgoing = new SerialQueue()
  readonly #uploads: Uploads
  readonly #lost = Promise.withResolvers<never>()
  /** Rooms that the bot is not in, and why; files that could not be sent. */
  readonly #problems = new Map<string, string>()
  /** The message that waits for its confirmation. */
  #unconfirmed: { readonly id: string; readonly refused: (error: Error) => void } | undefined

  static async open(link: Link, resource: string): Promise<XmppSession> {
    const domain = (link.config.jid.split('@')[1] ?? '').toLowerCase()
    const session = new XmppSession(link, await connectTo(link, domain), resource, domain)
    try {
      await Promise.race([session.#client.start(), session.#lost.promise])
      return session
    } catch (error) {
      await session[Symbol.asyncDispose]()
      throw failureOf(error, domain)
    }
  }

  private constructor(link: Link, connection: Connection, resource: string, domain: string) {
    this.#link = link
    this.#connection = connection
    this.#domain = domain
    const [username = ''] = link.config.jid.split('@')
    const service = `xmpps://${domain}`
    this.#client = client({
      service,
      domain,
      resource,
      username,
      password: link.config.token,
      timeout: ANSWER_MS,
    } as Parameters<typeof client>[0])
    this.#uploads = new Uploads(link, this.#client, domain)
    // The host reconnects.
    this.#client.reconnect.stop()
    useConnection(this.#client, connection)
    if (link.config.stream_management) countFromEnabled(this.#client)
    else hideStreamManagement(this.#client)
    this.#lost.promise.catch(() => undefined /* whoever waits gets it */)
    this.#client.on('error', (error) => this.#lost.reject(error))
    this.#client.on('disconnect', () => this.#lost.reject(new Error('the server closed the connection')))
    this.#client.on('element', () => link.heard())
    this.#client.on('stanza', (stanza) => this.#take(stanza))
    this.#background = runInBackground(link, (signal) => this.#wait(signal))
    this.closed = this.#background.closed
  }

  async join(): Promise<void> {
    const { rooms, nick } = this.#link.config
    await this.#client.send(xml('presence'))
    for (const room of rooms) {
      const muc = xml('x', { xmlns: 'http://jabber.org/protocol/muc' }, xml('history', { maxstanzas: '0' }))
      await this.#client.send(xml('presence', { to: `${room}/${nick}` }, muc))
    }
  }

  warnings(): readonly string[] {
    return [...this.#problems.values()]
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    return await this.#sendBody(message, message.id)
  }
  async readAttachment(reference: JsonObject, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const url = new URL(String(reference['url']))
    const answer = await this.#link.fetch(url, {
      signal,
      // Not elsewhere, where a redirect may lead.
      check: (next) => {
        if (!isOfServer(next, this.#domain)) throw new Refusal('forbidden', `${next.host} is not of ${this.#domain}`)
      },
    })
    if (!answer.ok)
      throw new UpstreamFailure('xmpp', `the file was answered with ${answer.status}`, {
        reason: 'not_found',
        retry: 'never',
      })
    return answer.chunks()
  }
  async edit(sent: SentMessage, message: OutboundMessage): Promise<void> {
    const replace = xml('replace', { xmlns: 'urn:xmpp:message-correct:0', id: sent.id })
    await this.#sendBody(message, randomUUID(), replace)
  }
  async typing(to: Destination): Promise<void> {
    const composing = xml('composing', { xmlns: 'http://jabber.org/protocol/chatstates' })
    await this.#client.send(xml('message', this.#attributes(to, randomUUID()), composing))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#connection.destroyed) await this.#sayGoodbye()
    await this.#background[Symbol.asyncDispose]()
  }

  /** Lets the last stanzas go out, unless nobody takes them. */
  async #sayGoodbye(): Promise<void> {
    const written = Promise.withResolvers<void>()
    const late = setTimeout(written.resolve, END_MS)
    this.#connection.once('close', () => written.resolve())
    this.#connection.end('</stream:stream>', () => written.resolve())
    await written.promise
    clearTimeout(late)
  }

  async #sendBody(message: OutboundMessage, id: string, ...more: readonly Element[]): Promise<SentMessage> {
    const { to, text, replyTo } = message
    if (!ADDRESS.test(to.chatId))
      throw new UpstreamFailure('xmpp', `"${to.chatId}" is not an address`, {
        reason: 'invalid_request',
        retry: 'never',
      })
    const { addresses, problems } = await this.#store(message.attachments)
    const stanza = xml(
      'message',
      this.#attributes(to, id),
      xml('body', {}, withoutControls([text, ...addresses, ...problems].filter((line) => line !== '').join('\n'))),
      ...addresses.map((address) => xml('x', { xmlns: 'jabber:x:oob' }, xml('url', {}, address))),
      xml('active', { xmlns: 'http://jabber.org/protocol/chatstates' }),
      ...(replyTo === undefined ? [] : [xml('reply', { xmlns: 'urn:xmpp:reply:0', id: replyTo, to: to.chatId })]),
      ...more,
    )
    await this.#outgoing.run(() => this.#confirmed(id, stanza))
    return { id }
  }

  /** A file that the server will never take is named in the message, which goes out without it. */
  async #store(files: readonly OutboundAttachment[]) {
    const [addresses, problems]: [string[], string[]] = [[], []]
    for (const file of files) {
      try {
        addresses.push(await this.#uploads.store(file))
        this.#problems.delete(UPLOAD)
      } catch (error) {
        const failure = failureOf(error, this.#domain)
        if (failure.retry !== 'never') throw failure
        // Why is for the operator: it may name addresses and settings.
        this.#warn(UPLOAD, `${file.name} could not be sent: ${failure.message}`)
        const reason = failure instanceof FileTooLarge ? `: it is larger than ${failure.maxBytes} bytes` : ''
        problems.push(`[${file.name} could not be sent${reason}]`)
      }
    }
    return { addresses, problems }
  }

  #warn(subject: string, problem: string): void {
    this.#problems.set(subject, problem)
    this.#link.log.warn(problem)
  }

  #attributes({ chatId }: Destination, id: string) {
    return { to: chatId, id, type: isRoom(chatId, this.#link.config) ? 'groupchat' : 'chat' }
  }

  /** Servers do not acknowledge messages, but they answer a ping after what came before it. */
  async #confirmed(id: string, stanza: Element): Promise<void> {
    const refused = Promise.withResolvers<never>()
    this.#unconfirmed = { id, refused: refused.reject }
    try {
      const sent = this.#client.send(stanza).then(() => this.#ping())
      await Promise.race([sent, refused.promise, this.#lost.promise])
    } catch (error) {
      throw failureOf(error, this.#domain)
    } finally {
      this.#unconfirmed = undefined
    }
  }

  async #ping(): Promise<void> {
    const ping = xml('iq', { type: 'get', to: this.#domain }, xml('ping', { xmlns: 'urn:xmpp:ping' }))
    try {
      await this.#client.iqCaller.request(ping, ANSWER_MS)
    } catch (error) {
      // A server without pings answers as well.
      if (!(error instanceof Error && error.name === 'StanzaError')) throw error
    }
  }

  #take(stanza: Element): void {
    if (stanza.attrs['type'] === 'error') return this.#takeError(stanza)
    if (stanza.is('presence')) return this.#takePresence(stanza)
    if (!stanza.is('message')) return
    const message = decodeMessage(stanza, { config: this.#link.config, now: this.#link.now() })
    if (!message) return
    this.#incoming.run(() => this.#link.receive(message)).catch((error: unknown) => this.#lost.reject(error))
  }

  #takeError(stanza: Element): void {
    const refusal = refusalOf(stanza, this.#domain)
    if (stanza.is('message') && stanza.attrs['id'] === this.#unconfirmed?.id) this.#unconfirmed?.refused(refusal)
    const room = stanza.is('presence') ? this.#roomOf(stanza) : undefined
    if (room !== undefined) this.#warn(room, `cannot join ${room}: ${refusal.message}`)
  }

  /** The room of the account that a presence is of. Anybody may send one: `undefined` where it is of no such room. */
  #roomOf(stanza: Element): string | undefined {
    const room = bareOf(String(stanza.attrs['from']))
    return isRoom(room, this.#link.config) ? room : undefined
  }
  /** Of the bot itself: whether it is in a room. */
  #takePresence(stanza: Element): void {
    const room = this.#roomOf(stanza)
    if (room === undefined) return
    const muc = stanza.getChild('x', 'http://jabber.org/protocol/muc#user')
    const codes = (muc?.getChildren('status') ?? []).map((status) => status.attrs['code'])
    if (!codes.includes(SELF)) return
    if (stanza.attrs['type'] !== 'unavailable') this.#problems.delete(room)
    else this.#warn(room, `removed from ${room}: ${muc?.getChild('item')?.getChildText('reason') ?? 'no reason given'}`)
  }

  async #wait(signal: AbortSignal): Promise<void> {
    const ended = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    try {
      if (!signal.aborted) await Promise.race([ended, this.#lost.promise, this.#keepAlive(signal)])
    } catch (error) {
      throw failureOf(error, this.#domain)
    } finally {
      this.#connection.destroy()
      await this.#incoming.idle()
    }
  }

  async #keepAlive(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#link.sleep(PING_MS)
      await this.#ping()
    }
  }
}

/** Signs that XML cannot carry. */
function withoutControls(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]|[\uFFFE\uFFFF]/gu, '')
}

interface Internals {
  transports: (new () => object)[]
  _onElement(element: Element): void
}

/** The library opens no connection of its own: it gets this one. */
function useConnection(entity: Client, connection: Connection): void {
  const internals = entity as unknown as Internals
  const transport = internals.transports.find((one) => {
    const { socketParameters } = one.prototype as { socketParameters(service: string): unknown }
    return socketParameters.call(one.prototype, 'xmpps://example.org') !== undefined
  })
  if (!transport) throw new TypeError('@xmpp/client has no transport for TLS')
  const Guarded = class extends transport {}
  Object.assign(Guarded.prototype, { Socket: socketClassFor(connection) })
  internals.transports = [Guarded]
}

/**
 * The library resets its count of received stanzas a moment after `enabled`, when it has counted some: servers end the
 * stream for an acknowledgement of fewer than before.
 */
function countFromEnabled(entity: Client): void {
  const internals = entity as unknown as Internals
  const take = internals._onElement.bind(entity)
  let received = 0
  Object.defineProperty(entity.streamManagement, 'inbound', {
    get: () => received,
    set: (count: number) => {
      if (count > 0) received = count
    },
  })
  internals._onElement = (element) => {
    if (element.is('enabled', STREAM_MANAGEMENT)) received = 0
    take(element)
  }
}

export function hideStreamManagement(entity: Client): void {
  const internals = entity as unknown as Internals
  const take = internals._onElement.bind(entity)
  internals._onElement = (element) => {
    if (element.name === 'stream:features' || element.name === 'features') element.remove('sm', STREAM_MANAGEMENT)
    take(element)
  }
}
