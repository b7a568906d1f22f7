import { createHash, createHmac, pbkdf2Sync, randomUUID } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { client, xml } from '@xmpp/client'
import type { Client } from '@xmpp/client'
import type { Element } from '../../../adapters/channels/xmpp/wire.ts'
import { attachmentKind } from 'svc/channels'
import { hideStreamManagement } from '../../../adapters/channels/xmpp/link.ts'
import { localCertificate } from './certificate.ts'
import { Recorded, Shown } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformFile, PlatformInput, PlatformMessage } from './platform.ts'
import { freePorts, startServer } from './server-process.ts'

const UPLOAD = 'urn:xmpp:http:upload:0'
const PASSWORD = 'chat-password-42e8'
const NICK = 'svcbot'
/** What the server takes as one file. */
export const MAX_FILE_BYTES = 100_000

export interface Prosody extends AsyncDisposable {
  readonly port: number
  readonly tlsPort: number
  /** Somebody who is signed in for all tests. */
  readonly person: Client
}
export async function startProsody(): Promise<Prosody> {
  const [port = 0, tlsPort = 0, httpPort = 0] = await freePorts(3)
  const server = await startServer('prosody', async (folder) => {
    const file = (...names: readonly string[]): string => join(folder, ...names)
    const { key, cert } = localCertificate()
    await writeFile(file('key.pem'), key)
    await writeFile(file('cert.pem'), cert)
    await mkdir(file('data', 'localhost', 'accounts'), { recursive: true })
    for (const user of ['bot', 'ada'])
      await writeFile(file('data', 'localhost', 'accounts', `${user}.dat`), storedAccount())
    await writeFile(
      file('prosody.cfg.lua'),
      `daemonize = false
run_as_root = true
pidfile = "${file('prosody.pid')}"
data_path = "${file('data')}"
certificates = "${folder}"
interfaces = { "127.0.0.1" }
c2s_ports = { ${port} }
c2s_direct_tls_ports = { ${tlsPort} }
s2s_ports = {}
modules_enabled = { "saslauth", "tls", "disco", "ping", "smacks", "offline" }
modules_disabled = { "s2s" }
http_ports = { ${httpPort} }
https_ports = {}
http_external_url = "http://localhost:${httpPort}/"
http_default_host = "share.localhost"
authentication = "internal_hashed"
c2s_require_encryption = true
ssl = { key = "${file('key.pem')}", certificate = "${file('cert.pem')}" }
log = { { levels = { min = "warn" }, to = "console" } }
VirtualHost "localhost"
Component "rooms.localhost" "muc"
muc_room_locking = false
muc_room_default_public_jids = false
Component "share.localhost" "http_file_share"
http_file_share_size_limit = ${MAX_FILE_BYTES}
`,
    )
    return { command: '/usr/bin/prosody', args: ['-F', '--config', file('prosody.cfg.lua')], port: tlsPort }
  })
  const person = await signIn(port)
  return {
    port,
    tlsPort,
    person,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
    },
  }
}

/** The password as prosody stores it, with few iterations: the client takes seconds for many on a busy machine. */
function storedAccount(): string {
  const [salt, iterations] = ['salt', 100]
  const salted = pbkdf2Sync(PASSWORD, salt, iterations, 20, 'sha1')
  const keyOf = (name: string): Buffer => createHmac('sha1', salted).update(name).digest()
  const stored = createHash('sha1').update(keyOf('Client Key')).digest('hex')
  return `return { iteration_count = ${iterations}, salt = "${salt}", stored_key = "${stored}", server_key = "${keyOf('Server Key').toString('hex')}" };`
}

async function signIn(port: number): Promise<Client> {
  setDefaultCACertificates([...getCACertificates('default'), localCertificate().cert])
  const person = client({
    service: `xmpp://localhost:${port}`,
    domain: 'localhost',
    username: 'ada',
    password: PASSWORD,
    resource: 'ada',
  })
  person.reconnect.stop()
  hideStreamManagement(person)
  person.on('error', () => undefined)
  await person.start()
  await person.send(xml('presence'))
  return person
}

/** prosody, and a person on it with another client. */
export class ProsodyPlatform implements FakePlatform {
  readonly channel = 'xmpp'
  readonly redelivers = false
  readonly secrets = [PASSWORD]
  readonly chats: FakePlatform['chats']
  readonly person = 'ada@localhost'
  readonly faults: ReadonlySet<PlatformFault['kind']> = new Set()
  readonly typing: string[] = []
  readonly reactions = []
  readonly violations: string[] = []
  readonly config: Readonly<Record<string, unknown>>
  readonly wrongConfig: Readonly<Record<string, unknown>>
  readonly #shown = new Shown()
  readonly #arrivals = new Recorded<string>('arrivals of the bot')
  readonly #person: Client
  readonly #room = `room-${randomUUID()}@rooms.localhost`
  #awaited = 0
  #bot = ''

  static async start(
    server: Prosody,
    options: { readonly scheme?: 'xmpp' | 'xmpps'; readonly streamManagement?: boolean } = {},
  ): Promise<ProsodyPlatform> {
    const platform = new ProsodyPlatform(server, options.scheme ?? 'xmpps', options.streamManagement ?? true)
    await platform.#join()
    return platform
  }

  private constructor({ port, tlsPort, person }: Prosody, scheme: 'xmpp' | 'xmpps', streamManagement: boolean) {
    const base = {
      jid: 'bot@localhost',
      base_url: scheme === 'xmpp' ? `xmpp://127.0.0.1:${port}` : `xmpps://127.0.0.1:${tlsPort}`,
      ca: localCertificate().cert,
      rooms: [this.#room],
      nick: NICK,
      resource: `bot-${randomUUID()}`,
      stream_management: streamManagement,
    }
    this.config = { ...base, token: PASSWORD }
    this.wrongConfig = { ...base, token: 'wrong-password' }
    this.chats = { direct: 'ada@localhost', group: this.#room }
    this.#person = person
    person.on('stanza', this.#take)
  }

  get sent(): readonly PlatformMessage[] {
    return this.#shown.sent
  }
  waitForSent(count: number): Promise<readonly PlatformMessage[]> {
    return this.#shown.waitForSent(count)
  }
  async deliver({ text, isGroup, mentionsBot, isOwn, replyTo, editOf, files = [] }: PlatformInput): Promise<string> {
    const id = randomUUID()
    if (isOwn) return id
    const addresses = await Promise.all(files.map((file) => this.#upload(file)))
    const words = [`${mentionsBot ? `${NICK}: ` : ''}${text}`, ...addresses].join('\n')
    await this.#person.send(
      xml(
        'message',
        {
          to: isGroup ? this.#room : `bot@localhost/${this.config['resource'] as string}`,
          type: isGroup ? 'groupchat' : 'chat',
          id,
        },
        xml('body', {}, words),
        ...addresses.map((address) => xml('x', { xmlns: 'jabber:x:oob' }, xml('url', {}, address))),
        ...(replyTo === undefined ? [] : [xml('reply', { xmlns: 'urn:xmpp:reply:0', id: replyTo, to: this.#bot })]),
        ...(editOf === undefined ? [] : [xml('replace', { xmlns: 'urn:xmpp:message-correct:0', id: editOf })]),
      ),
    )
    return id
  }
  /** A stanza as the person sends it. */
  async sendStanza(stanza: Element): Promise<void> {
    await this.#person.send(stanza)
  }
  async waitForListener(): Promise<void> {
    await this.#arrivals.wait(++this.#awaited)
  }
  fail(): void {
    throw new Error('a real server does not fail on request')
  }
  setWebhook(): void {}
  async [Symbol.asyncDispose](): Promise<void> {
    this.#person.off('stanza', this.#take)
    await this.#person.send(xml('presence', { to: `${this.#room}/ada`, type: 'unavailable' }))
  }

  /** Stores a file of the person, and returns its address. */
  async #upload({ name, mime, bytes }: PlatformFile): Promise<string> {
    const request = { xmlns: UPLOAD, filename: name, size: String(bytes.length), 'content-type': mime }
    const answer = await this.#person.iqCaller.request(
      xml('iq', { type: 'get', to: 'share.localhost' }, xml('request', request)),
    )
    const slot: Element | undefined = answer.getChild('slot')
    const put = slot?.getChild('put')
    const headers = (put?.getChildren('header') ?? []).map((header): [string, string] => [
      String(header.attrs['name']),
      header.getText(),
    ])
    const stored = await fetch(String(put?.attrs['url']), {
      method: 'PUT',
      headers: [...headers, ['content-type', mime]],
      body: new Uint8Array(bytes),
    })
    if (!stored.ok) throw new Error(`prosody answered the upload with ${stored.status}`)
    return String(slot?.getChild('get')?.attrs['url'])
  }
  /** What a client shows of the files that a message announces. */
  async #filesOf(stanza: Element): Promise<readonly PlatformFile[]> {
    const addresses = stanza.getChildren('x', 'jabber:x:oob').map((part) => part.getChildText('url') ?? '')
    return Promise.all(
      addresses.map(async (address) => {
        const answer = await fetch(address)
        const mime = answer.headers.get('content-type') ?? ''
        const name = decodeURIComponent(new URL(address).pathname.split('/').at(-1) ?? '')
        return { kind: attachmentKind(mime), name, mime, bytes: new Uint8Array(await answer.arrayBuffer()) }
      }),
    )
  }

  async #join(): Promise<void> {
    const joined = new Promise<void>((resolve) => {
      const listener = (stanza: Element): void => {
        if (!stanza.is('presence') || stanza.attrs['from'] !== `${this.#room}/ada`) return
        this.#person.off('stanza', listener)
        resolve()
      }
      this.#person.on('stanza', listener)
    })
    await this.#person.send(
      xml('presence', { to: `${this.#room}/ada` }, xml('x', { xmlns: 'http://jabber.org/protocol/muc' })),
    )
    await joined
  }

  readonly #take = (stanza: Element): void => {
    const from = String(stanza.attrs['from'] ?? '')
    if (stanza.is('presence') && from === `${this.#room}/${NICK}` && stanza.attrs['type'] === undefined)
      this.#arrivals.add(from)
    if (!stanza.is('message') || stanza.attrs['type'] === 'error') return
    const isBot = from === `bot@localhost/${String(this.config['resource'])}` || from === `${this.#room}/${NICK}`
    if (!isBot) return
    this.#bot = from
    const chatId = from.startsWith('bot@') ? 'ada@localhost' : this.#room
    const text = stanza.getChildText('body')
    if (stanza.getChild('composing') && !this.typing.includes(chatId)) this.typing.push(chatId)
    if (text === null) return
    const replaced: unknown = stanza.getChild('replace')?.attrs['id']
    if (typeof replaced === 'string') return void this.#shown.edit(replaced, text)
    const addresses = stanza.getChildren('x', 'jabber:x:oob').map((part) => part.getChildText('url') ?? '')
    const message = {
      id: String(stanza.attrs['id']),
      chatId,
      text: text
        .split('\n')
        .filter((line) => !addresses.includes(line))
        .join('\n'),
      replyTo: stanza.getChild('reply')?.attrs['id'] as string | undefined,
      buttons: [],
    }
    if (addresses.length === 0) return void this.#shown.show({ ...message, files: [] })
    this.#filesOf(stanza).then(
      (files) => this.#shown.show({ ...message, files }),
      (error: unknown) => this.violations.push(`a file cannot be read: ${String(error)}`),
    )
  }
}
