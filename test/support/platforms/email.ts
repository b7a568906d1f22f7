import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chmod, chown, mkdir, rename, stat, utimes, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { dirname, join } from 'node:path'
import MailComposer from 'nodemailer/lib/mail-composer/index.js'
import PostalMime from 'postal-mime'
import { SMTPServer } from 'smtp-server'
import { localCertificate } from './certificate.ts'
import { Shown } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformInput, PlatformMessage } from './platform.ts'
import { freePorts, startServer } from './server-process.ts'

const PASSWORD = 'mail-password-5d10'
/** Of the user `nobody`: Dovecot reads no mail as root. */
const NOBODY = 65_534

export interface Dovecot extends AsyncDisposable {
  readonly port: number
  /** Encrypted after STARTTLS. */
  readonly startTlsPort: number
  readonly folder: string
}
export async function startDovecot(): Promise<Dovecot> {
  const [port = 0, startTlsPort = 0] = await freePorts(2)
  const server = await startServer('dovecot-imapd', async (folder) => {
    const file = (name: string): string => join(folder, name)
    const { key, cert } = localCertificate()
    for (const path of [folder, dirname(folder)]) await chmod(path, (await stat(path)).mode | 0o011)
    await writeFile(file('key.pem'), key)
    await writeFile(file('cert.pem'), cert)
    await writeFile(
      file('dovecot.conf'),
      `protocols = imap
listen = 127.0.0.1
base_dir = ${file('run')}
state_dir = ${file('state')}
log_path = /dev/stderr
auth_failure_delay = 0
ssl = required
ssl_cert = <${file('cert.pem')}
ssl_key = <${file('key.pem')}
mail_location = maildir:${folder}/mail/%u
passdb {
  driver = static
  args = password=${PASSWORD}
}
userdb {
  driver = static
  args = uid=${NOBODY} gid=${NOBODY} home=${folder}/mail/%u
}
service anvil {
  unix_listener anvil-auth-penalty {
    mode = 0
  }
}
service imap-login {
  inet_listener imap {
    port = ${startTlsPort}
  }
  inet_listener imaps {
    port = ${port}
    ssl = yes
  }
}
`,
    )
    return { command: '/usr/sbin/dovecot', args: ['-F', '-c', file('dovecot.conf')], port }
  })
  return { port, startTlsPort, folder: server.folder, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

/** Dovecot with a mailbox of its own, an SMTP server, and a line between the adapter and Dovecot that can be cut. */
export class MailPlatform implements FakePlatform {
  readonly channel = 'email'
  readonly redelivers = true
  readonly secrets = [PASSWORD]
  readonly chats = { direct: 'ada@people.test', thread: '<thread-1@people.test>' }
  readonly person = 'ada@people.test'
  readonly faults: ReadonlySet<PlatformFault['kind']> = new Set([
    'server_error',
    'reset',
    'lost_answer',
    'permanent',
    'auth',
  ])
  readonly typing: readonly string[] = []
  readonly reactions = []
  readonly violations: readonly string[] = []
  readonly config: Readonly<Record<string, unknown>>
  readonly wrongConfig: Readonly<Record<string, unknown>>
  /** Headers of what was sent. */
  readonly headers: Map<string, string>[] = []
  readonly #shown = new Shown()
  readonly #folder: string
  readonly #line: CutLine
  readonly #smtp: SMTPServer

  static async start(dovecot: Dovecot, options: { readonly startTls?: boolean } = {}): Promise<MailPlatform> {
    const user = `bot-${randomUUID()}@svc.test`
    const folder = join(dovecot.folder, 'mail', user)
    for (const name of ['', 'cur', 'new', 'tmp']) {
      await mkdir(join(folder, name), { recursive: true })
      await chown(join(folder, name), NOBODY, NOBODY)
    }
    const line = await CutLine.start(options.startTls ? dovecot.startTlsPort : dovecot.port)
    const platform = new MailPlatform(user, folder, line, options.startTls ?? false)
    await platform.#listen()
    const { port } = platform.#smtp.server.address() as AddressInfo
    Object.assign(platform.config, { smtp_url: `${options.startTls ? 'smtp' : 'smtps'}://127.0.0.1:${port}` })
    Object.assign(platform.wrongConfig, { smtp_url: platform.config['smtp_url'] })
    return platform
  }

  private constructor(user: string, folder: string, line: CutLine, startTls: boolean) {
    this.#folder = folder
    this.#line = line
    const base = {
      base_url: `${startTls ? 'imap' : 'imaps'}://127.0.0.1:${line.port}`,
      address: user,
      ca: localCertificate().cert,
    }
    this.config = { ...base, token: PASSWORD }
    this.wrongConfig = { ...base, token: 'wrong-password' }
    this.#smtp = new SMTPServer({
      ...localCertificate(),
      secure: !startTls,
      logger: false,
      onAuth: (auth, _session, done) => {
        const isRevoked = this.#takes('auth')
        if (auth.password === PASSWORD && !isRevoked) done(null, { user: auth.username ?? '' })
        else done(failed(535, 'wrong credentials'))
      },
      onRcptTo: (_address, _session, done) =>
        done(
          this.#takes('permanent')
            ? failed(550, 'no such user')
            : this.#takes('server_error')
              ? failed(421, 'busy')
              : null,
        ),
      onData: (stream, session, done) => {
        void this.#take(stream, session.id, done)
      },
    })
    this.#smtp.on('error', () => undefined)
  }

  get sent(): readonly PlatformMessage[] {
    return this.#shown.sent
  }
  waitForSent(count: number): Promise<readonly PlatformMessage[]> {
    return this.#shown.waitForSent(count)
  }
  fail(fault: PlatformFault): void {
    this.#next = fault.kind
  }
  #next: PlatformFault['kind'] | undefined
  #takes(kind: PlatformFault['kind']): boolean {
    const isNext = this.#next === kind
    if (isNext) this.#next = undefined
    return isNext
  }

  async deliver({ text, threadId, replyTo, files = [], isOwn, redeliveryOf }: PlatformInput): Promise<string> {
    const messageId = redeliveryOf ?? `<${randomUUID()}@people.test>`
    const mail = new MailComposer({
      messageId,
      from: isOwn ? String(this.config['address']) : { name: 'Ada', address: 'Ada@People.test' },
      to: String(this.config['address']),
      text,
      ...(threadId !== undefined && { references: threadId, inReplyTo: threadId }),
      ...(replyTo !== undefined && { references: replyTo, inReplyTo: replyTo }),
      attachments: files.map(({ name, mime, bytes }) => ({
        filename: name,
        contentType: mime,
        content: Buffer.from(bytes),
      })),
    })
    await this.deliverRaw(await mail.compile().build())
    return messageId
  }
  /** Puts a mail into the mailbox as a delivery agent does. `at` is when the server took it. */
  async deliverRaw(mail: Uint8Array | string, at?: Date): Promise<void> {
    const name = `${Date.now()}.M${process.hrtime.bigint()}P1.test`
    const written = join(this.#folder, 'tmp', name)
    await writeFile(written, mail)
    await chown(written, NOBODY, NOBODY)
    if (at) await utimes(written, at, at)
    await rename(written, join(this.#folder, 'new', name))
  }
  async disconnect(): Promise<void> {
    this.#line.cut()
  }
  setWebhook(): void {}
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#line[Symbol.asyncDispose]()
    if (this.#smtp.server.listening) await new Promise<void>((resolve) => this.#smtp.close(() => resolve()))
  }

  async #listen(): Promise<void> {
    this.#smtp.listen(0, '127.0.0.1')
    await once(this.#smtp.server, 'listening')
  }

  async #take(stream: NodeJS.ReadableStream, _session: string, done: (error?: Error | null) => void): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of stream) chunks.push(Buffer.from(chunk))
    if (this.#takes('reset')) return this.#resetConnections()
    const isLost = this.#takes('lost_answer')
    const mail = await PostalMime.parse(Buffer.concat(chunks))
    this.headers.push(new Map(mail.headers.map(({ key, value }) => [key, value])))
    this.#shown.show({
      id: mail.messageId ?? '',
      chatId: mail.to?.[0]?.address ?? '',
      threadId: /<[^<>\s]+>/.exec(mail.references ?? '')?.[0],
      text: (mail.html ?? '').trim(),
      replyTo: mail.inReplyTo,
      files: mail.attachments.map(({ filename, mimeType, content }) => ({
        kind: 'file',
        name: filename ?? '',
        mime: mimeType,
        bytes: typeof content === 'string' ? Buffer.from(content) : new Uint8Array(content),
      })),
      buttons: [],
    })
    if (isLost) this.#resetConnections()
    else done()
  }

  #resetConnections(): void {
    for (const connection of this.#smtp.connections) (connection as { _socket: Socket })._socket.destroy()
  }
}

function failed(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode })
}

/** Passes connections on to a port until they are cut. */
class CutLine implements AsyncDisposable {
  readonly port: number
  readonly #server: Server
  readonly #open = new Set<Socket>()

  static async start(port: number): Promise<CutLine> {
    const server = createServer()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    return new CutLine(server, port)
  }
  private constructor(server: Server, to: number) {
    this.#server = server
    this.port = (server.address() as AddressInfo).port
    server.on('connection', (near) => {
      const far = connect(to, '127.0.0.1')
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#open.add(socket)
        socket.on('error', () => undefined)
        socket.once('close', () => {
          this.#open.delete(socket)
          other.destroy()
        })
        socket.pipe(other)
      }
    })
  }
  cut(): void {
    for (const socket of this.#open) socket.destroy()
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve))
  }
}
