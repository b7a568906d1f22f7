import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { endOf, JsonSocket, RecentMap, SavedPosition } from 'svc/channels'
import type { ChannelLink, ConnectionEnd } from 'svc/channels'
import type { GotifyApi } from './api.ts'
import type { GotifyConfig } from './config.ts'
import { decodeMessage, ownIdOf } from './decode.ts'
import { Message } from './wire.ts'

const NORMAL = 1000
const MAX_APPLICATIONS = 1000
/**
 * Two messages can be told in another order than their ids say: what was read already is dropped as a duplicate.
 */
const OVERLAP = 20
/** Pages of 200 messages. What is older was written while the daemon was away for very long, and is left out. */
const MAX_PAGES = 50
/** What all of them have together. */
const MAX_CHARS = 33_554_432
/** Messages of a page: fewer where many are too long together for one answer. */
const PAGE_SIZES = [200, 20, 1]

/** Passes on messages: those of the stream, and those that were sent while it was not open. */
export class GotifyStream {
  readonly #link: ChannelLink<GotifyConfig>
  readonly #api: GotifyApi
  readonly #position: SavedPosition
  readonly #names = new RecentMap<number, string>(MAX_APPLICATIONS)
  #socket: JsonSocket | undefined
  #closed: Promise<ConnectionEnd> | undefined
  #caughtUp: Promise<void> | undefined
  #last = 0
  /** What was sent up to this one is history. */
  #start = 0

  constructor(link: ChannelLink<GotifyConfig>, api: GotifyApi) {
    this.#link = link
    this.#api = api
    this.#position = new SavedPosition(link, 'last')
  }

  get closed(): Promise<ConnectionEnd> {
    if (!this.#closed) throw new Error('The stream was not opened')
    return this.#closed
  }

  /** Settles when what was missed is durable. Throws `UpstreamFailure`. */
  async open(): Promise<void> {
    const { client_token: token } = this.#link.config
    const raw = await this.#link.webSocket(this.#api.streamUrl, {
      headers: { 'x-gotify-key': token },
      signal: this.#link.signal,
    })
    const caughtUp = Promise.withResolvers<void>()
    this.#caughtUp = caughtUp.promise
    // Told by this function; the work of frames only waits for it.
    caughtUp.promise.catch(() => undefined)
    // It is open before the past is read, so that nothing falls between the two.
    this.#socket = new JsonSocket(this.#link, raw, (frame) => () => this.#receiveFrame(frame))
    this.#closed = this.#watch(this.#socket)
    try {
      await this.#catchUp()
      caughtUp.resolve()
    } catch (error) {
      caughtUp.reject(error)
      await this.close()
      this.#link.signal.throwIfAborted()
      throw error
    }
  }

  async close(): Promise<void> {
    await this.#socket?.close(NORMAL)
    await this.#closed
  }

  async #watch(socket: JsonSocket): Promise<ConnectionEnd> {
    const { failure, code } = await socket.ended
    try {
      await this.#position.flush()
    } catch (error) {
      // An older position holds: what came after it is read again.
      this.#link.log.warn('The position in the messages of Gotify could not be saved', { error })
    }
    return failure === undefined
      ? { retry: 'later', reason: `gotify closed the connection with ${code}` }
      : endOf(failure)
  }

  async #receiveFrame(frame: unknown): Promise<void> {
    await this.#caughtUp
    const message = v.safeParse(Message, frame)
    if (message.success) return this.#receive(message.output)
    this.#link.log.warn('Gotify sent a message in a form that cannot be read')
  }

  /** Reads what was sent since the last message that was dealt with. The first time there is nothing to read. */
  async #catchUp(): Promise<void> {
    const saved = await this.#position.read()
    if (saved === undefined) {
      const { messages } = await this.#api.page(0, 1)
      this.#last = this.#start = messages[0]?.id ?? 0
      await this.#position.write(this.#saved())
      return
    }
    const [last = 0, start = 0] = saved.split(' ').map(Number)
    this.#last = last
    this.#start = start
    for (const message of await this.#readAfter(Math.max(last - OVERLAP, start))) await this.#receive(message)
  }

  /** Oldest first. */
  async #readAfter(last: number): Promise<readonly Message[]> {
    const found: Message[] = []
    const sizes = [...PAGE_SIZES]
    let chars = 0
    let since = 0
    for (let page = 0; page < MAX_PAGES && chars < MAX_CHARS; page++) {
      const { messages, since: next } = await this.#page(since, sizes)
      found.push(...messages.filter(({ id }) => id > last))
      chars += messages.reduce((sum, { message }) => sum + message.length, 0)
      if (next === 0 || next <= last) return found.toReversed()
      since = next
    }
    this.#link.log.warn(`More than ${found.length} messages were sent to Gotify meanwhile: older ones are left out`)
    return found.toReversed()
  }

  /** Leaves out the sizes that were too much. */
  async #page(since: number, sizes: number[]): ReturnType<GotifyApi['page']> {
    try {
      return await this.#api.page(since, sizes[0])
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || error.reason !== 'malformed' || sizes.length === 1) throw error
      sizes.shift()
      return this.#page(since, sizes)
    }
  }

  async #receive(message: Message): Promise<void> {
    if (ownIdOf(message) === undefined) {
      const decoded = decodeMessage(message, await this.#nameOf(message.appid))
      if (decoded) await this.#link.receive(decoded)
    }
    if (message.id <= this.#last) return
    this.#last = message.id
    this.#position.set(this.#saved())
  }

  #saved(): string {
    return `${this.#last} ${this.#start}`
  }

  async #nameOf(application: number): Promise<string | undefined> {
    if (!this.#names.has(application))
      for (const { id, name } of await this.#api.applications()) this.#names.set(id, name)
    return this.#names.get(application)
  }
}
