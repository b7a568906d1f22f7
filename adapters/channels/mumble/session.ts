import type { TLSSocket } from 'node:tls'
import { SerialQueue, shortened } from 'svc/sdk'
import type { Connection, UpstreamFailure } from 'svc/sdk'
import { runInBackground, toTlsOptions } from 'svc/channels'
import type { Background, ChannelConnection, OutboundMessage, SentMessage } from 'svc/channels'
import type { Link } from './config.ts'
import { decodeMessage, DIRECT } from './decode.ts'
import type { User } from './decode.ts'
import { Directory } from './directory.ts'
import { encodeAuthenticate, encodeDeaf, encodeMove, encodePing, encodeText, encodeVersion } from './encode.ts'
import type { Target } from './encode.ts'
import { denial, mumbleFailure, rejection } from './errors.ts'
import { decodeFrame, readFrames } from './wire.ts'
import type { ServerMessage } from './wire.ts'

const PORT = 64_738
/** Servers disconnect whoever is silent for 30 seconds. */
const PING_MS = 15_000
/** Two pings that are not answered are a lost connection. */
export const SILENCE_MS = 3 * PING_MS
const ANSWER_MS = 30_000
/** UTF-16 units of a message on a server that sets no other limit. */
export const MAX_LENGTH = 5000

export async function openMumble(link: Link): Promise<ChannelConnection> {
  const session = await MumbleSession.open(link)
  await session.enter()
  return session
}

export async function probeMumble(link: Link): Promise<{ readonly account: string }> {
  await using session = await MumbleSession.open(link)
  return { account: session.account }
}

class MumbleSession implements ChannelConnection {
  readonly closed: ChannelConnection['closed']
  readonly #link: Link
  readonly #socket: Connection
  readonly #server: string
  readonly #background: Background
  readonly #directory = new Directory()
  readonly #queue = new SerialQueue()
  readonly #synchronized = Promise.withResolvers<void>()
  readonly #warnings = new Set<string>()
  #session: number | undefined
  #takesHtml = true
  /** What the server was sent and has not dealt with. */
  #unconfirmed: { readonly timestamp: number; readonly settled: PromiseWithResolvers<void> } | undefined
  #timestamp = 0

  static async open(link: Link): Promise<MumbleSession> {
    const { hostname: host, port } = new URL(link.config.base_url)
    const socket = await connect(link, host, Number(port) || PORT)
    const session = new MumbleSession(link, socket, host)
    await session.#authenticate()
    return session
  }

  private constructor(link: Link, socket: Connection, server: string) {
    this.#link = link
    this.#socket = socket
    this.#server = server
    this.#background = runInBackground(link, (signal) => this.#read(signal))
    this.closed = this.#background.closed
    void this.closed.then(({ reason }) => this.#fail(mumbleFailure(`${server}: ${reason}`, 'network', 'later')))
  }

  get account(): string {
    return `${this.#bot.name}@${this.#server}`
  }

  /** Goes to the channel of the configuration. The bot works elsewhere, too, and says so. */
  async enter(): Promise<void> {
    await this.#exchange(encodeDeaf(this.#bot.session))
    const { channel } = this.#link.config
    if (channel === undefined) return
    const id = this.#directory.findChannel(channel)
    if (id === undefined) return this.#warn(`there is no channel ${channel} on ${this.#server}`)
    if (id === this.#bot.channelId) return
    try {
      await this.#exchange(encodeMove(this.#bot.session, id))
    } catch (error) {
      if (this.#background.signal.aborted || this.#socket.destroyed) throw error
      this.#warn(`the bot cannot enter ${channel}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    const target = this.#targetOf(message.to.chatId)
    await this.#exchange(encodeText(target, this.#takesHtml ? message.text : message.plainText))
    return { id: '' }
  }

  warnings(): readonly string[] {
    return [...this.#warnings]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#background[Symbol.asyncDispose]()
  }

  async #authenticate(): Promise<void> {
    const late = setTimeout(() => this.#fail(this.#lateFailure()), ANSWER_MS)
    try {
      this.#write(encodeVersion())
      this.#write(encodeAuthenticate(this.#link.config))
      await this.#synchronized.promise
    } catch (error) {
      await this[Symbol.asyncDispose]()
      throw error
    } finally {
      clearTimeout(late)
    }
  }

  get #bot(): User {
    const session = this.#session ?? 0
    return this.#directory.user(session) ?? { session, name: this.#link.config.username, channelId: 0 }
  }

  /** Servers say nothing of a message to somebody or something that is not there. */
  #targetOf(chatId: string): Target {
    if (chatId.startsWith(DIRECT)) {
      const sessions = this.#directory.sessionsOf(chatId.slice(DIRECT.length))
      // Who was disconnected, as when the server starts anew, is soon back.
      if (sessions.length === 0) throw mumbleFailure('the person is not on the server', 'not_found', 'later')
      return { sessions }
    }
    const channelId = /^\d{1,10}$/.test(chatId) ? Number(chatId) : -1
    if (!this.#directory.hasChannel(channelId)) throw mumbleFailure('there is no such channel', 'not_found', 'never')
    return { channelId }
  }

  async #read(signal: AbortSignal): Promise<void> {
    const socket = this.#socket
    const keepAlive = this.#keepAlive()
    const end = (): void => void socket.destroy()
    signal.addEventListener('abort', end, { once: true })
    if (signal.aborted) end()
    try {
      for await (const frame of readFrames(socket)) {
        this.#link.heard()
        const message = decodeFrame(frame)
        if (message) await this.#take(message)
      }
    } finally {
      signal.removeEventListener('abort', end)
      socket.destroy()
      await keepAlive
    }
    throw mumbleFailure('the server closed the connection', 'network', 'later')
  }

  /** Ends with the connection. */
  async #keepAlive(): Promise<void> {
    const closed = new Promise<'closed'>((resolve) => this.#socket.once('close', () => resolve('closed')))
    while ((await Promise.race([this.#pause(), closed])) !== 'closed') this.#write(encodePing(++this.#timestamp))
  }
  /** The end of the link closes the socket, which ends the loop above. */
  async #pause(): Promise<'pause' | 'closed'> {
    return await this.#link.sleep(PING_MS).then(
      () => 'pause' as const,
      () => 'closed' as const,
    )
  }

  async #take(message: ServerMessage): Promise<void> {
    switch (message.kind) {
      case 'textMessage':
        return this.#receive(message)
      case 'userState':
        return this.#directory.updateUser(message)
      case 'userRemove':
        return this.#takeRemoval(message)
      case 'channelState':
        return this.#directory.updateChannel(message)
      case 'channelRemove':
        return this.#directory.removeChannel(message.channelId)
      case 'ping':
        if (message.timestamp === this.#unconfirmed?.timestamp) this.#unconfirmed.settled.resolve()
        return
      case 'permissionDenied':
        return this.#unconfirmed?.settled.reject(denial(message, this.#server))
      case 'serverConfig':
        return this.#takeConfig(message)
      case 'serverSync':
        this.#session = message.session
        return this.#synchronized.resolve()
      case 'reject':
        throw this.#fail(rejection(message, this.#server))
    }
  }

  #takeConfig({ allowHtml, maxLength }: Extract<ServerMessage, { kind: 'serverConfig' }>): void {
    this.#takesHtml = allowHtml
    if (maxLength > 0 && maxLength < MAX_LENGTH)
      this.#warn(`${this.#server} takes messages of ${maxLength} characters only: longer ones are refused`)
  }

  #takeRemoval({ session, reason, isBan }: Extract<ServerMessage, { kind: 'userRemove' }>): void {
    this.#directory.removeUser(session)
    if (session !== this.#session) return
    const words = isBan ? 'banned' : 'removed'
    throw mumbleFailure(
      `${this.#server}: the bot was ${words}${reason && `: ${shortened(reason)}`}`,
      isBan ? 'auth' : 'network',
      isBan ? 'never' : 'later',
    )
  }

  async #receive(message: Extract<ServerMessage, { kind: 'textMessage' }>): Promise<void> {
    if (this.#session === undefined) return
    const decoded = decodeMessage(message, {
      bot: this.#bot,
      now: this.#link.now(),
      user: (session) => this.#directory.user(session),
      channelName: (id) => this.#directory.channelName(id),
    })
    if (decoded) await this.#link.receive(decoded)
  }

  /** Servers acknowledge nothing, but they answer a ping after they have dealt with what came before it. */
  async #exchange(frame: Uint8Array): Promise<void> {
    await this.#queue.run(async () => {
      const unconfirmed = { timestamp: ++this.#timestamp, settled: Promise.withResolvers<void>() }
      this.#unconfirmed = unconfirmed
      const late = setTimeout(() => unconfirmed.settled.reject(this.#lateFailure()), ANSWER_MS)
      try {
        this.#write(frame)
        this.#write(encodePing(unconfirmed.timestamp))
        await unconfirmed.settled.promise
      } finally {
        clearTimeout(late)
        this.#unconfirmed = undefined
      }
    })
  }

  #write(frame: Uint8Array): void {
    if (this.#socket.destroyed || this.#socket.writableEnded)
      this.#fail(mumbleFailure(`${this.#server}: the connection is closed`, 'network', 'later'))
    else this.#socket.write(frame)
  }

  #warn(text: string): void {
    this.#warnings.add(text)
    this.#link.log.warn(text)
  }

  #lateFailure(): UpstreamFailure {
    return mumbleFailure(`${this.#server} did not answer in time`, 'timeout', 'later')
  }

  #fail(error: UpstreamFailure): UpstreamFailure {
    this.#synchronized.reject(error)
    this.#unconfirmed?.settled.reject(error)
    return error
  }
}

/** Nothing is sent before the certificate of the server is checked. */
async function connect(link: Link, host: string, port: number): Promise<Connection> {
  const { server_fingerprint: fingerprint } = link.config
  const tls = { ...toTlsOptions(link.config), ...(fingerprint !== undefined && { rejectUnauthorized: false }) }
  const socket = await link.connect({ host, port, tls })
  const { fingerprint256: actual } = (socket as unknown as TLSSocket).getPeerCertificate()
  if (fingerprint === undefined || digits(fingerprint) === digits(actual)) return socket
  socket.destroy()
  throw mumbleFailure(`${host} has another certificate: its SHA-256 fingerprint is ${actual}`, 'network', 'never')
}
const digits = (fingerprint: string): string => fingerprint.replaceAll(':', '').toLowerCase()
