import { randomUUID } from 'node:crypto'
import { SerialQueue } from 'svc/sdk'
import type { Connection, UpstreamFailure } from 'svc/sdk'
import { runInBackground, toTlsOptions } from 'svc/channels'
import type { Background, ChannelConnection, Destination, OutboundMessage, SentMessage } from 'svc/channels'
import type { Link } from './config.ts'
import { decodeMessage } from './decode.ts'
import { encodeText, encodeTyping } from './encode.ts'
import { failureOf, ircFailure } from './errors.ts'
import { FloodControl } from './flood.ts'
import { Registration } from './registration.ts'
import { parseLine, readLines } from './wire.ts'
import type { IrcLine } from './wire.ts'

const PING_MS = 60_000
/** A ping that is not answered within half a minute is a lost connection. */
export const SILENCE_MS = PING_MS + 30_000
const CONFIRM_MS = 30_000
const REGISTER_MS = 30_000
const QUIT_MS = 500

export async function openIrc(link: Link): Promise<ChannelConnection> {
  const session = await IrcSession.open(link)
  session.join()
  return session
}

export async function probeIrc(link: Link): Promise<{ readonly account: string }> {
  await using session = await IrcSession.open(link)
  return { account: session.account }
}

/** A message that is on its way until the server answers the ping behind it. */
interface Unconfirmed {
  readonly token: string
  readonly target: string
  readonly settled: PromiseWithResolvers<void>
  /** The server's id of its first line, where the server shows the bot its own messages. */
  id: string
}

class IrcSession implements ChannelConnection {
  readonly closed: ChannelConnection['closed']
  readonly #link: Link
  readonly #socket: Connection
  readonly #server: string
  readonly #registration: Registration
  readonly #registered = Promise.withResolvers<void>()
  readonly #background: Background
  readonly #queue = new SerialQueue()
  readonly #flood: FloodControl
  #isRegistered = false
  #unconfirmed: Unconfirmed | undefined
  /** What the server puts before the lines of the bot: as long as it may be until it is known. */
  #prefix: string
  /** Why the server ends the connection. */
  #farewell: string | undefined
  /** Channels that the bot is not in, and why. */
  readonly #absences = new Map<string, string>()

  static async open(link: Link): Promise<IrcSession> {
    const { hostname: host, port, protocol } = new URL(link.config.base_url)
    const isSecure = protocol === 'ircs:'
    if (!isSecure && link.config.token !== undefined) link.log.warn(`the password goes to ${host} unencrypted`)
    const socket = await link.connect({
      host,
      port: Number(port) || (isSecure ? 6697 : 6667),
      ...(isSecure && { tls: toTlsOptions(link.config) }),
    })
    const session = new IrcSession(link, socket, host)
    await session.#register()
    return session
  }

  private constructor(link: Link, socket: Connection, server: string) {
    this.#link = link
    this.#socket = socket
    this.#server = server
    this.#flood = new FloodControl(link)
    this.#prefix = 'x'.repeat(110)
    this.#registration = new Registration(link.config, server, (line) => this.#write(line))
    this.#background = runInBackground(link, (signal) => this.#read(signal))
    this.closed = this.#background.closed
    void this.closed.then(({ reason }) => this.#fail(ircFailure(`${server}: ${reason}`, 'network', 'later')))
  }

  get account(): string {
    return `${this.#registration.nick}@${this.#server}`
  }

  warnings(): readonly string[] {
    return [...this.#absences.values()]
  }

  join(): void {
    const { nickserv_password: password, channels, nick } = this.#link.config
    if (password !== undefined) this.#write(`PRIVMSG NickServ :IDENTIFY ${password}`)
    if (channels.length > 0) this.#write(`JOIN ${channels.join(',')}`)
    if (this.#registration.nick !== nick)
      this.#link.log.warn(`the nickname "${nick}" is in use, so it is "${this.#registration.nick}"`)
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    return await this.#queue.run(async () => {
      const { chatId: target } = message.to
      const lines = encodeText(target, message.text, this.#prefix)
      const unconfirmed = { token: randomUUID(), target, settled: Promise.withResolvers<void>(), id: '' }
      // Who waits for the confirmation learns of a refusal that comes before.
      unconfirmed.settled.promise.catch(() => undefined)
      this.#unconfirmed = unconfirmed
      for (const line of lines) {
        await this.#flood.take()
        this.#write(line)
      }
      return { id: await this.#confirm(unconfirmed) }
    })
  }

  async typing({ chatId }: Destination): Promise<void> {
    const line = encodeTyping(chatId)
    if (this.#registration.capabilities.has('message-tags') && this.#flood.tryTake()) this.#write(line)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#socket.destroyed) await this.#quit()
    await this.#background[Symbol.asyncDispose]()
  }

  /** Lets the last lines go out, unless nobody takes them. */
  async #quit(): Promise<void> {
    const written = Promise.withResolvers<void>()
    const late = setTimeout(written.resolve, QUIT_MS)
    this.#socket.once('close', () => written.resolve())
    this.#socket.end('QUIT\r\n', () => written.resolve())
    await written.promise
    clearTimeout(late)
  }

  async #register(): Promise<void> {
    const late = setTimeout(
      () => this.#fail(ircFailure(`${this.#server} did not register the bot in time`, 'timeout', 'later')),
      REGISTER_MS,
    )
    try {
      this.#registration.begin()
      await this.#registered.promise
      this.#isRegistered = true
    } catch (error) {
      await this[Symbol.asyncDispose]()
      throw error
    } finally {
      clearTimeout(late)
    }
  }

  async #read(signal: AbortSignal): Promise<void> {
    const socket = this.#socket
    const keepAlive = this.#keepAlive()
    const end = (): void => void socket.destroy()
    signal.addEventListener('abort', end, { once: true })
    try {
      for await (const text of readLines(socket)) {
        this.#link.heard()
        const line = parseLine(text)
        if (line) await this.#take(line)
      }
    } finally {
      signal.removeEventListener('abort', end)
      socket.destroy()
      await keepAlive
    }
    if (this.#farewell !== undefined) throw ircFailure(this.#farewell, 'network', 'later')
    throw ircFailure('the server closed the connection', 'network', 'later')
  }

  /** Ends with the connection: until then the host hears nothing of a server that is gone. */
  async #keepAlive(): Promise<void> {
    const closed = new Promise<'closed'>((resolve) => this.#socket.once('close', () => resolve('closed')))
    while ((await Promise.race([this.#pause(), closed])) !== 'closed') this.#write(`PING ${this.#server}`)
  }
  /** The end of the link closes the socket, which ends the loop above. */
  async #pause(): Promise<'pause' | 'closed'> {
    return await this.#link.sleep(PING_MS).then(
      () => 'pause' as const,
      () => 'closed' as const,
    )
  }

  async #take(line: IrcLine): Promise<void> {
    if (line.command === 'PING') return this.#write(`PONG :${line.params.at(-1) ?? ''}`)
    if (line.command === 'ERROR') return this.#takeFarewell(line.params.at(-1) ?? '')
    if (!this.#isRegistered) return this.#takeRegistration(line)
    if (line.command === 'PRIVMSG' && !this.#isOwn(line.from)) return await this.#receive(line)
    if (line.command === 'PONG' && line.params.at(-1) === this.#unconfirmed?.token)
      return this.#unconfirmed?.settled.resolve()
    if (this.#isOwn(line.from)) return this.#takeOwn(line, line.params[0] ?? '')
    this.#takeRefusal(line)
  }

  #takeFarewell(text: string): void {
    this.#farewell = text
    if (this.#isRegistered) return
    // Some servers end the connection without the number for a wrong password.
    const [reason, retry] = /password/i.test(text) ? (['auth', 'never'] as const) : (['network', 'later'] as const)
    this.#registered.reject(ircFailure(`${this.#server}: ${text}`, reason, retry))
  }

  #takeRegistration(line: IrcLine): void {
    try {
      if (this.#registration.take(line) === 'registered') this.#registered.resolve()
    } catch (error) {
      this.#registered.reject(error)
    }
  }

  #takeOwn(line: IrcLine, name: string): void {
    // Its length decides how much of a text fits into a line.
    if (line.command === 'JOIN' || line.command === 'PRIVMSG') this.#prefix = line.prefix
    if (line.command === 'JOIN') this.#absences.delete(name.toLowerCase())
    if (line.command === 'NICK') this.#registration.nick = name
    const sent = this.#unconfirmed
    if (line.command === 'PRIVMSG' && sent?.target.toLowerCase() === name.toLowerCase())
      sent.id ||= line.tags.get('msgid') ?? ''
  }

  #takeRefusal(line: IrcLine): void {
    const [, subject = '', reason = ''] = line.params
    const failure = failureOf(line, this.#server)
    if (failure && this.#unconfirmed?.target.toLowerCase() === subject.toLowerCase())
      return this.#unconfirmed.settled.reject(failure)
    if (CANNOT_JOIN.has(line.command)) this.#leave(subject, `cannot join ${subject}: ${reason}`)
    const [channel = ''] = line.params
    if (line.command === 'KICK' && this.#isOwn(subject)) this.#leave(channel, `removed from ${channel}: ${reason}`)
  }

  #leave(channel: string, why: string): void {
    this.#absences.set(channel.toLowerCase(), why)
    this.#link.log.warn(why)
  }

  async #receive(line: IrcLine): Promise<void> {
    const { nick, capabilities } = this.#registration
    const message = decodeMessage(line, { nick, hasAccounts: capabilities.has('account-tag'), now: this.#link.now() })
    if (message) await this.#link.receive(message)
  }

  /** Servers do not acknowledge messages, but they answer a ping after what came before it. */
  async #confirm(unconfirmed: Unconfirmed): Promise<string> {
    const late = setTimeout(
      () => unconfirmed.settled.reject(ircFailure(`${this.#server} did not confirm in time`, 'timeout', 'later')),
      CONFIRM_MS,
    )
    try {
      this.#write(`PING ${unconfirmed.token}`)
      await unconfirmed.settled.promise
      return unconfirmed.id
    } finally {
      clearTimeout(late)
      this.#unconfirmed = undefined
    }
  }

  #isOwn(nick: string): boolean {
    return nick.toLowerCase() === this.#registration.nick.toLowerCase()
  }

  #write(line: string): void {
    if (this.#socket.destroyed || this.#socket.writableEnded) {
      this.#fail(ircFailure(`${this.#server}: the connection is closed`, 'network', 'later'))
      return
    }
    this.#socket.write(`${line}\r\n`)
  }

  #fail(error: UpstreamFailure): void {
    this.#registered.reject(error)
    this.#unconfirmed?.settled.reject(error)
  }
}

const CANNOT_JOIN = new Set(['403', '405', '471', '473', '474', '475', '477', '489'])
