import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { localCertificate } from './certificate.ts'
import { Recorded } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformInput, PlatformMessage } from './platform.ts'
import { freePorts, startServer } from './server-process.ts'

const PASSWORD = 'server-password-7f3a'
const BOT = 'svcbot'
const ROOM = '#room'

/** ngircd, and a person on it who is an operator. */
export class NgircdPlatform implements FakePlatform {
  readonly channel = 'irc'
  readonly secrets = [PASSWORD]
  readonly chats = { direct: 'ada', group: ROOM }
  readonly person = 'ada'
  readonly faults: ReadonlySet<PlatformFault['kind']> = new Set()
  readonly hidesTyping = true
  readonly typing: readonly string[] = []
  readonly reactions = []
  readonly violations: readonly string[] = []
  readonly config: Readonly<Record<string, unknown>>
  readonly wrongConfig: Readonly<Record<string, unknown>>
  readonly #person: Person
  readonly #shown = new Recorded<PlatformMessage>('messages')
  #arrivals = new Recorded<string>('arrivals of the bot')
  #awaited = 0

  static async start({ port, tlsPort }: Ngircd): Promise<NgircdPlatform> {
    const platform = new NgircdPlatform(new Person(connect(port, '127.0.0.1'), 'ada'), tlsPort)
    await platform.#person.command(`OPER ops ${PASSWORD}`, '381')
    await platform.#person.command(`JOIN ${ROOM}`, '366')
    return platform
  }

  private constructor(person: Person, port: number) {
    this.#person = person
    const base = { base_url: `ircs://127.0.0.1:${port}`, nick: BOT, channels: [ROOM], ca: localCertificate().cert }
    this.config = { ...base, token: PASSWORD }
    this.wrongConfig = { ...base, token: 'wrong-password' }
    person.onLine((line) => this.#take(line))
  }

  get sent(): readonly PlatformMessage[] {
    return this.#shown.items
  }
  waitForSent(count: number): Promise<readonly PlatformMessage[]> {
    return this.#shown.wait(count)
  }
  async deliver({ text, isGroup, mentionsBot, isOwn }: PlatformInput): Promise<string> {
    if (!isOwn) await this.#person.send(`PRIVMSG ${isGroup ? ROOM : BOT} :${mentionsBot ? `${BOT}: ` : ''}${text}`)
    return ''
  }
  /** A line as the person sends it. */
  async sendLine(line: string): Promise<void> {
    await this.#person.send(line)
  }
  async disconnect(): Promise<void> {
    await this.#person.send(`KILL ${BOT} :enough`)
  }
  async waitForListener(): Promise<void> {
    await this.#arrivals.wait(++this.#awaited)
  }
  fail(): void {
    throw new Error('a real server does not fail on request')
  }
  setWebhook(): void {}
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#person.end()
  }

  #take(line: string): void {
    const [, from, command, target = '', text = ''] = /^:([^!\s]+)\S* (\S+) :?(\S+)(?: :(.*))?$/.exec(line) ?? []
    if (from !== BOT) return
    if (command === 'JOIN') this.#arrivals.add(from)
    if (command === 'PRIVMSG') this.#shown.add({ id: '', chatId: target, text, edits: [], files: [], buttons: [] })
  }
}

/** A client that speaks the protocol by hand. */
class Person {
  readonly #socket: Socket
  readonly #listeners = new Set<(line: string) => void>()
  readonly #registered: Promise<void>

  constructor(socket: Socket, nick: string) {
    this.#socket = socket
    createInterface(socket).on('line', (line) => {
      if (line.startsWith('PING')) socket.write(line.replace('PING', 'PONG') + '\r\n')
      for (const listener of this.#listeners) listener(line)
    })
    this.#registered = this.#answer('376', '422')
    socket.write(`PASS ${PASSWORD}\r\nNICK ${nick}\r\nUSER ${nick} 0 * :${nick}\r\n`)
  }
  onLine(listener: (line: string) => void): void {
    this.#listeners.add(listener)
  }
  /** Settles with the answer. */
  async command(line: string, ...answers: readonly string[]): Promise<void> {
    await this.#registered
    const answered = this.#answer(...answers)
    this.#socket.write(`${line}\r\n`)
    await answered
  }
  /** Settles when the server has taken it. */
  async send(line: string): Promise<void> {
    await this.command(`${line}\r\nPING taken`, 'PONG')
  }
  /** Settles when the server has closed the connection, so that the name is free. */
  async end(): Promise<void> {
    if (this.#socket.closed) return
    const closed = once(this.#socket, 'close')
    this.#socket.end('QUIT\r\n')
    await closed
  }
  #answer(...commands: readonly string[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const listener = (line: string): void => {
        const command = line.split(' ')[1] ?? ''
        if (!commands.includes(command) && !/^4\d\d$/.test(command)) return
        this.#listeners.delete(listener)
        if (commands.includes(command)) resolve()
        else reject(new Error(line))
      }
      this.#listeners.add(listener)
    })
  }
}

export interface Ngircd extends AsyncDisposable {
  readonly port: number
  readonly tlsPort: number
}
export async function startNgircd(): Promise<Ngircd> {
  const [port = 0, tlsPort = 0] = await freePorts(2)
  const server = await startServer('ngircd', (folder) => configure(folder, port, tlsPort))
  return { port, tlsPort, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

async function configure(folder: string, port: number, tlsPort: number) {
  const { key, cert } = localCertificate()
  const file = join(folder, 'ngircd.conf')
  await writeFile(join(folder, 'key.pem'), key)
  await writeFile(join(folder, 'cert.pem'), cert)
  await writeFile(
    file,
    `[Global]
Name = irc.test
Info = test
Listen = 127.0.0.1
Ports = ${port}
Password = ${PASSWORD}
MotdPhrase = hello
[Limits]
MaxConnectionsIP = 0
MaxNickLength = 31
MaxPenaltyTime = 0
[Options]
DNS = no
Ident = no
PAM = no
[SSL]
CertFile = ${join(folder, 'cert.pem')}
KeyFile = ${join(folder, 'key.pem')}
Ports = ${tlsPort}
[Operator]
Name = ops
Password = ${PASSWORD}
`,
  )
  return { command: '/usr/sbin/ngircd', args: ['-n', '-f', file], port }
}
