import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect, createServer } from 'node:tls'
import type { TLSSocket } from 'node:tls'
import type { AddressInfo } from 'node:net'
import { localCertificate } from './certificate.ts'
import { Recorded } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformInput, PlatformMessage } from './platform.ts'
import { freePorts, startServer } from './server-process.ts'

const PASSWORD = 'server-password-4d1e'
const ADMIN_PASSWORD = 'admin-password-88ab'
/** The user that every server has, with the id 0. */
const PERSON = 'SuperUser'
const BOT = 'svc-bot'
const ROOM = 'Kitchen'

/** Types of messages. Source: src/MumbleProtocol.h of github.com/mumble-voip/mumble */
const TEXT = 11
const PING = 3
const REJECT = 4
const SYNC = 5
const CHANNEL_STATE = 7
const USER_REMOVE = 8
const USER_STATE = 9

/** The fields of a protobuf message: each with its values in order. */
export type Fields = ReadonlyMap<number, readonly (number | Buffer)[]>
type Values = Readonly<Record<number, number | string | readonly number[]>>

/** A frame, encoded by hand. */
export function frame(type: number, values: Values): Buffer {
  const body = Buffer.concat(
    Object.entries(values).flatMap(([tag, value]) => {
      if (typeof value !== 'string')
        return [value].flat().map((one) => Buffer.from([...varint(Number(tag) << 3), ...varint(one)]))
      const text = Buffer.from(value)
      return [Buffer.from([...varint((Number(tag) << 3) | 2), ...varint(text.length)]), text]
    }),
  )
  const header = Buffer.alloc(6)
  header.writeUInt16BE(type)
  header.writeUInt32BE(body.length, 2)
  return Buffer.concat([header, body])
}
function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value % 0x80) + 0x80, ...varint(Math.floor(value / 0x80))]
}

function readFields(body: Buffer): Fields {
  const fields = new Map<number, (number | Buffer)[]>()
  let at = 0
  const next = (): number => {
    let value = 0
    for (let scale = 1; ; scale *= 0x80) {
      const byte = body[at++] ?? 0
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
  }
  while (at < body.length) {
    const key = next()
    const tag = key >>> 3
    const kind = key & 7
    const length = kind === 2 ? next() : kind === 5 ? 4 : kind === 1 ? 8 : 0
    const value = kind === 0 ? next() : body.subarray(at, (at += length))
    fields.set(tag, [...(fields.get(tag) ?? []), value])
  }
  return fields
}
export const numberIn = (fields: Fields, tag: number): number | undefined => {
  const value = fields.get(tag)?.at(-1)
  return typeof value === 'number' ? value : undefined
}
export const textIn = (fields: Fields, tag: number): string => String(fields.get(tag)?.at(-1) ?? '')

/** Calls `take` with each message that comes. */
export function onFrame(socket: TLSSocket, take: (type: number, fields: Fields) => void): void {
  let rest = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 6 && rest.length >= 6 + rest.readUInt32BE(2)) {
      const end = 6 + rest.readUInt32BE(2)
      take(rest.readUInt16BE(0), readFields(rest.subarray(6, end)))
      rest = rest.subarray(end)
    }
  })
}

export interface Murmur extends AsyncDisposable {
  readonly port: number
}
export interface MurmurOptions {
  /** Lines of its settings. */
  readonly settings?: readonly string[]
}
/** The server of Debian's package, which lets a user send as fast as tests do. */
export async function startMurmur({ settings = [] }: MurmurOptions = {}): Promise<Murmur> {
  const [port = 0] = await freePorts(1)
  const server = await startServer('mumble-server', async (folder) => {
    const { key, cert } = localCertificate()
    await writeFile(join(folder, 'key.pem'), key)
    await writeFile(join(folder, 'cert.pem'), cert)
    const file = join(folder, 'murmur.ini')
    const lines = [
      `database=${join(folder, 'murmur.sqlite')}`,
      'host=127.0.0.1',
      `port=${port}`,
      `serverpassword=${PASSWORD}`,
      `sslCert=${join(folder, 'cert.pem')}`,
      `sslKey=${join(folder, 'key.pem')}`,
      'messagelimit=1000',
      'messageburst=1000',
      'autobanAttempts=0',
      'kdfIterations=1000',
      'bonjour=False',
      'allowping=False',
      'uname=root',
      'logfile=',
      'ice=',
      ...settings,
    ]
    await writeFile(file, `${lines.join('\n')}\n`)
    spawnSync('/usr/sbin/murmurd', ['-ini', file, '-supw', ADMIN_PASSWORD])
    return { command: '/usr/sbin/murmurd', args: ['-fg', '-ini', file], port }
  })
  return { port, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

/** murmurd, and its administrator as the person. */
export class MurmurPlatform implements FakePlatform {
  readonly channel = 'mumble'
  readonly secrets = [PASSWORD]
  readonly chats
  readonly person = '0'
  readonly faults: ReadonlySet<PlatformFault['kind']> = new Set()
  readonly typing: readonly string[] = []
  readonly reactions = []
  readonly violations: readonly string[] = []
  readonly config: Readonly<Record<string, unknown>>
  readonly wrongConfig: Readonly<Record<string, unknown>>
  readonly #person: MumbleClient
  readonly #room: number
  readonly #shown = new Recorded<PlatformMessage>('messages')
  #bot: number | undefined

  static async start({ port }: Murmur): Promise<MurmurPlatform> {
    const person = await MumbleClient.open(port, { 1: PERSON, 2: ADMIN_PASSWORD })
    const isRoom = (type: number, fields: Fields): boolean => type === CHANNEL_STATE && textIn(fields, 3) === ROOM
    if (!person.seen.some(([type, fields]) => isRoom(type, fields))) {
      person.write(CHANNEL_STATE, { 2: 0, 3: ROOM })
      await person.wait(isRoom)
    }
    const [, room] = person.seen.findLast(([type, fields]) => isRoom(type, fields)) ?? []
    const platform = new MurmurPlatform(person, port, (room && numberIn(room, 1)) ?? -1)
    person.write(USER_STATE, { 1: person.session, 5: platform.#room })
    await person.settle()
    return platform
  }

  private constructor(person: MumbleClient, port: number, room: number) {
    this.#person = person
    this.#room = room
    this.chats = { direct: '@0', group: String(room) }
    const base = {
      base_url: `mumble://127.0.0.1:${port}`,
      username: BOT,
      channel: ROOM,
      ca: localCertificate().cert,
    }
    this.config = { ...base, token: PASSWORD }
    this.wrongConfig = { ...base, token: 'wrong-password' }
    person.onFrame((type, fields) => this.#take(type, fields))
  }

  get sent(): readonly PlatformMessage[] {
    return this.#shown.items
  }
  waitForSent(count: number): Promise<readonly PlatformMessage[]> {
    return this.#shown.wait(count)
  }
  async deliver({ text, isGroup, mentionsBot, isOwn }: PlatformInput): Promise<string> {
    if (isOwn) return ''
    const html = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
    await this.sendHtml(`${mentionsBot ? `${BOT}: ` : ''}${html}`, isGroup)
    return ''
  }
  /** A text as the client of the person writes it. */
  async sendHtml(html: string, isGroup = false, isTree = false): Promise<void> {
    const to = isTree ? { 4: 0 } : isGroup ? { 3: this.#room } : { 2: this.#bot ?? -1 }
    this.#person.write(TEXT, { ...to, 5: html })
    await this.#person.settle()
  }
  /** Removes the bot from the server. */
  async kick(reason: string, isBan: boolean): Promise<void> {
    const bot = this.#bot ?? -1
    this.#bot = undefined
    this.#person.write(USER_REMOVE, { 1: bot, 3: reason, ...(isBan && { 4: 1 }) })
    await this.#person.settle()
  }
  async disconnect(): Promise<void> {
    await this.kick('enough', false)
  }
  async waitForListener(): Promise<void> {
    if (this.#bot === undefined)
      await this.#person.wait((type, fields) => type === USER_STATE && numberIn(fields, 5) === this.#room)
  }
  fail(): void {
    throw new Error('a real server does not fail on request')
  }
  setWebhook(): void {}
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#person[Symbol.asyncDispose]()
  }

  #take(type: number, fields: Fields): void {
    const session = numberIn(fields, 1)
    if (type === USER_REMOVE && session === this.#bot) this.#bot = undefined
    if (type === USER_STATE && session !== this.#person.session && numberIn(fields, 5) === this.#room)
      this.#bot = session
    if (type !== TEXT) return
    const group = numberIn(fields, 3)
    const chatId = group === undefined ? '@0' : String(group)
    this.#shown.add({ id: '', chatId, text: textIn(fields, 5), edits: [], files: [], buttons: [] })
  }
}

/** A client that speaks the protocol by hand. */
export class MumbleClient implements AsyncDisposable {
  readonly seen: (readonly [type: number, fields: Fields])[] = []
  session = 0
  readonly #socket: TLSSocket
  readonly #listeners = new Set<(type: number, fields: Fields) => void>()
  #pings = 0

  /** `login` are the fields of the message that signs in. Rejects with the reason that the server gives. */
  static async open(port: number, login: Values, cert?: { readonly key: string; readonly cert: string }) {
    const client = new MumbleClient(connect({ host: '127.0.0.1', port, ca: localCertificate().cert, ...cert }))
    client.write(0, { 1: 0x01_04_00, 2: 'person' })
    client.write(2, { ...login, 5: 1 })
    await client.wait((type) => type === SYNC || type === REJECT)
    const [type, fields = new Map()] = client.seen.findLast(([one]) => one === SYNC || one === REJECT) ?? []
    if (type === REJECT) throw new Error(textIn(fields, 2))
    client.session = numberIn(fields, 1) ?? 0
    return client
  }
  private constructor(socket: TLSSocket) {
    this.#socket = socket
    onFrame(socket, (type, fields) => {
      this.seen.push([type, fields])
      for (const listener of this.#listeners) listener(type, fields)
    })
  }

  write(type: number, values: Values): void {
    this.#socket.write(frame(type, values))
  }
  onFrame(listener: (type: number, fields: Fields) => void): void {
    this.#listeners.add(listener)
  }
  /** Settles with the next such message. */
  async wait(matches: (type: number, fields: Fields) => boolean): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const listener = (type: number, fields: Fields): void => {
      if (matches(type, fields)) resolve()
    }
    const fail = (): void => reject(new Error('the server closed the connection'))
    this.#listeners.add(listener)
    this.#socket.once('close', fail)
    try {
      await promise
    } finally {
      this.#listeners.delete(listener)
      this.#socket.off('close', fail)
    }
  }
  /** Settles when the server has dealt with what it was sent. */
  async settle(): Promise<void> {
    const number = ++this.#pings
    const settled = this.wait((type, fields) => type === PING && numberIn(fields, 1) === number)
    this.write(PING, { 1: number })
    await settled
  }
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#socket.closed) return
    const closed = once(this.#socket, 'close')
    this.#socket.end()
    await closed
  }
}

/** A Mumble server for what the real one does not do: it answers each message as the script says. */
export class ScriptedMumble implements AsyncDisposable {
  readonly url: string
  readonly received = new Recorded<readonly [type: number, fields: Fields]>('messages of the client')
  readonly #server: ReturnType<typeof createServer>
  #socket: TLSSocket | undefined

  static async start(script: (type: number, fields: Fields) => readonly Buffer[]): Promise<ScriptedMumble> {
    const server = createServer(localCertificate())
    await once(server.listen(0, '127.0.0.1'), 'listening')
    return new ScriptedMumble(server, script)
  }
  private constructor(
    server: ReturnType<typeof createServer>,
    script: (type: number, fields: Fields) => readonly Buffer[],
  ) {
    this.#server = server
    this.url = `mumble://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('secureConnection', (socket: TLSSocket) => {
      this.#socket = socket
      socket.on('error', () => undefined)
      onFrame(socket, (type, fields) => {
        this.received.add([type, fields])
        for (const answer of script(type, fields)) socket.write(answer)
      })
    })
  }
  write(...data: readonly Uint8Array[]): void {
    for (const one of data) this.#socket?.write(one)
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket?.destroy()
    this.#server.close()
  }
}
