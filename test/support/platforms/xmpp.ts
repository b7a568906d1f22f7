import { createHash, createHmac, pbkdf2Sync, randomUUID } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { client, xml } from '@xmpp/client'
import type { Client } from '@xmpp/client'
import type { Element } from '../../../adapters/channels/xmpp/wire.ts'
import { hideStreamManagement } from '../../../adapters/channels/xmpp/link.ts'
import { localCertificate } from './certificate.ts'
import { Recorded, Shown } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformInput, PlatformMessage } from './platform.ts'
import { freePorts, startServer } from './server-process.ts'

const PASSWORD = 'chat-password-42e8'
const NICK = 'svcbot'

export interface Prosody extends AsyncDisposable {
  readonly port: number
  readonly tlsPort: number
  /** Somebody who is signed in for all tests. */
  readonly person: Client
}
export async function startProsody(): Promise<Prosody> {
  const [port = 0, tlsPort = 0] = await freePorts(2)
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
authentication = "internal_hashed"
c2s_require_encryption = true
ssl = { key = "${file('key.pem')}", certificate = "${file('cert.pem')}" }
log = { { levels = { min = "warn" }, to = "console" } }
VirtualHost "localhost"
Component "rooms.localhost" "muc"
muc_room_locking = false
muc_room_default_public_jids = false
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
  readonly violations: readonly string[] = []
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
  async deliver({ text, isGroup, mentionsBot, isOwn, replyTo, editOf }: PlatformInput): Promise<string> {
    const id = randomUUID()
    if (isOwn) return id
    await this.#person.send(
      xml(
        'message',
        {
          to: isGroup ? this.#room : `bot@localhost/${this.config['resource'] as string}`,
          type: isGroup ? 'groupchat' : 'chat',
          id,
        },
        xml('body', {}, `${mentionsBot ? `${NICK}: ` : ''}${text}`),
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
    this.#shown.show({
      id: String(stanza.attrs['id']),
      chatId,
      text,
      replyTo: stanza.getChild('reply')?.attrs['id'] as string | undefined,
      files: [],
      buttons: [],
    })
  }
}
