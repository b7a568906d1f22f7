import { ImapFlow } from 'imapflow'
import type { FetchMessageObject } from 'imapflow'
import { isObject, readJson, UpstreamFailure } from 'svc/sdk'
import type { Socket } from 'node:net'
import type { Connection } from 'svc/sdk'
import type { Link } from './config.ts'
import { decodeMail } from './decode.ts'
import type { Position } from './decode.ts'
import { imapFailure } from './errors.ts'
import { requestTls } from './start-tls.ts'

const CONNECT_MS = 30_000
/** Servers end IDLE after half an hour at the latest. */
const IDLE_MS = 1_200_000
/** How soon the server is asked to announce new mail. */
const IDLE_DELAY_MS = 20
const MAX_AT_ONCE = 50
const DAY_MS = 86_400_000
const POSITION = 'position'
/** Set on mail that cannot be read or is too large. */
const FAILED = '$SvcFailed'

/** The folder that is read, from the last mail that was handed over. */
export class Mailbox implements AsyncDisposable {
  readonly #link: Link
  readonly #client: ImapFlow
  readonly #socket: Connection
  readonly #server: string
  readonly #lost = Promise.withResolvers<never>()
  #arrived = Promise.withResolvers<void>()

  static async open(link: Link): Promise<Mailbox> {
    const { hostname: host, port: given, protocol } = new URL(link.config.base_url)
    const isSecure = protocol === 'imaps:'
    const port = Number(given) || (isSecure ? 993 : 143)
    const socket = await link.connect({ host, port })
    if (!isSecure) await requestTls(link, socket, host)
    const mailbox = new Mailbox(link, socket, host, port)
    await mailbox.#connect(isSecure)
    return mailbox
  }

  private constructor(link: Link, socket: Connection, host: string, port: number) {
    const { config } = link
    this.#link = link
    this.#socket = socket
    this.#server = host
    this.#client = new ImapFlow({
      host,
      port,
      secure: true,
      // The connection is there already; the library encrypts it.
      tls: {
        socket: socket as Socket,
        rejectUnauthorized: config.verify_certificate,
        ...(config.ca !== undefined && { ca: config.ca }),
      },
      auth: { user: config.username ?? config.address, pass: config.token },
      connectionTimeout: CONNECT_MS,
      greetingTimeout: CONNECT_MS,
      maxIdleTime: IDLE_MS,
      autoIdleDelay: IDLE_DELAY_MS,
      maxLiteralSize: config.max_message_bytes,
      disableCompression: true,
      logger: false,
    })
    this.#lost.promise.catch(() => undefined /* whoever waits gets it */)
    this.#client.on('error', (error: unknown) => this.#lost.reject(error))
    this.#client.on('close', () => this.#lost.reject(new Error('the server closed the connection')))
    this.#client.on('exists', () => this.#arrived.resolve())
  }

  /** Hands over what has come since the last position. */
  async receive(): Promise<void> {
    await this.#guard(async () => {
      const position = await this.#position()
      const found = await this.#client.fetchAll(
        `${position.uid + 1}:*`,
        { uid: true, size: true, internalDate: true },
        { uid: true },
      )
      // The range has the last mail even if it is older.
      const fresh = found.filter(({ uid }) => uid > position.uid).sort((one, other) => one.uid - other.uid)
      for (const mail of fresh.slice(0, MAX_AT_ONCE)) await this.#take(mail, position.uidValidity)
      if (fresh.length > MAX_AT_ONCE) this.#arrived.resolve()
    })
  }

  /** Settles when there may be new mail. Throws when the connection is lost. */
  async wait(): Promise<void> {
    await this.#guard(async () => {
      const { promise: sleeping, resolve, reject } = Promise.withResolvers<void>()
      this.#link.sleep(this.#link.config.poll_secs * 1000).then(resolve, reject)
      await Promise.race([this.#arrived.promise, sleeping, this.#lost.promise])
      this.#arrived = Promise.withResolvers<void>()
      await this.#client.noop()
    })
  }

  /** The mail at a position, or `undefined` when it is not there any more. */
  async source({ uidValidity, uid }: Position): Promise<Uint8Array | undefined> {
    return await this.#guard(async () => {
      if (uidValidity !== this.#uidValidity) return undefined
      const mail = await this.#client.fetchOne(String(uid), { source: true }, { uid: true })
      return mail === false ? undefined : mail?.source
    })
  }

  end(): void {
    this.#client.close()
    this.#socket.destroy()
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.end()
  }

  async #connect(greets: boolean): Promise<void> {
    try {
      await this.#guard(async () => {
        const connected = this.#client.connect()
        if (!greets) this.#greetItself()
        await connected
        await this.#client.mailboxOpen(this.#link.config.folder)
        await this.#position()
      })
    } catch (error) {
      this.end()
      throw error
    }
  }

  /** After STARTTLS the server waits for a command, and the library for the greeting that came before. */
  #greetItself(): void {
    const { socket } = this.#client as unknown as { readonly socket: Socket }
    socket.once('secureConnect', () => socket.unshift(Buffer.from('* OK ready\r\n')))
  }

  async #take({ uid, size = 0, internalDate }: FetchMessageObject, uidValidity: string): Promise<void> {
    const { config, log } = this.#link
    const flags = ['\\Seen']
    const outcome =
      size > config.max_message_bytes
        ? { dropped: 'it is too large' }
        : await this.#decode(uid, uidValidity, internalDate)
    if ('message' in outcome) await this.#link.receive(outcome.message)
    else log.info(`mail ${uid} is not answered: ${outcome.dropped}`)
    if ('isBroken' in outcome) flags.push(FAILED)
    const at = internalDate === undefined ? this.#link.now() : new Date(internalDate).getTime()
    await this.#link.state.write(POSITION, JSON.stringify({ uidValidity, uid, at }))
    await this.#client.messageFlagsAdd(String(uid), flags, { uid: true })
    this.#link.heard()
  }

  async #decode(uid: number, uidValidity: string, date: Date | string | undefined) {
    const source = await this.source({ uid, uidValidity })
    if (!source) return { dropped: 'it was removed' }
    const at = date === undefined ? this.#link.now() : new Date(date).getTime()
    try {
      return await decodeMail({ source, uid, uidValidity, at }, this.#link.config)
    } catch (error) {
      // It would fail again each time.
      return {
        dropped: `it cannot be read (${error instanceof Error ? error.message : String(error)})`,
        isBroken: true,
      }
    }
  }

  /** Of the last mail that was handed over. What is there at first is history. */
  async #position(): Promise<Position> {
    const stored: unknown = readJson((await this.#link.state.read(POSITION)) ?? 'null')
    const uidValidity = this.#uidValidity
    if (isObject(stored) && stored['uidValidity'] === uidValidity && typeof stored['uid'] === 'number')
      return { uidValidity, uid: stored['uid'] }
    const at = isObject(stored) && typeof stored['at'] === 'number' ? stored['at'] : undefined
    const position = { uidValidity, uid: at === undefined ? this.#lastUid : await this.#lastBefore(at) }
    await this.#link.state.write(POSITION, JSON.stringify({ ...position, at: at ?? this.#link.now() }))
    return position
  }

  /** The server numbered the folder anew: before the first mail that came since and that nobody read. */
  async #lastBefore(at: number): Promise<number> {
    this.#link.log.info('the mail server numbered the folder anew; what came since the last mail is read')
    // Roughly, as the server may count in days and has its own clock. No time to come: the library makes it
    // `YOUNGER 0`, which servers refuse.
    const since = new Date(Math.min(at, this.#link.now()) - DAY_MS)
    const unread = await this.#client.search({ seen: false, since }, { uid: true })
    // Not the same as an empty list: mail would be skipped.
    if (!unread)
      throw new UpstreamFailure('email', `${this.#server} did not search for unread mail`, {
        reason: 'server_error',
        retry: 'later',
      })
    if (unread.length === 0) return this.#lastUid
    const mails = await this.#client.fetchAll(unread.join(','), { uid: true, internalDate: true }, { uid: true })
    const fresh = mails.filter(({ internalDate }) => new Date(internalDate ?? 0).getTime() >= at)
    return Math.min(this.#lastUid, ...fresh.map(({ uid }) => uid - 1))
  }
  get #lastUid(): number {
    return this.#client.mailbox === false ? 0 : this.#client.mailbox.uidNext - 1
  }
  get #uidValidity(): string {
    return this.#client.mailbox === false ? '' : String(this.#client.mailbox.uidValidity)
  }

  async #guard<T>(work: () => Promise<T>): Promise<T> {
    try {
      const result = await Promise.race([work(), this.#lost.promise])
      this.#link.heard()
      return result
    } catch (error) {
      throw imapFailure(error, this.#server)
    }
  }
}
