import type { ServerResponse } from 'node:http'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Shown, startPlatformServer } from './http.ts'
import type { PlatformServer } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformInput } from './platform.ts'
import { Presence } from './sockets.ts'

export const PAPER_KEY = 'orbit ladder velvet canyon paper key of the bot'
export const BOT = 'svcbot'
export const ADA = { uid: '1f5c8a2b3c4d5e6f708192a3b4c5d619', username: 'ada' }
export const DIRECT = '0000a1b2c3d4e5f60718293a4b5c6d7e'
export const GROUP = '0000ffeeddccbbaa99887766554433aa'
const REACTIONS: Readonly<Record<string, string>> = { ':+1:': '👍' }

/** A program that asks the fake what to do. It prints what comes back, and ends as it is told. */
const script = (node: string, url: string): string => `#!${node}
const http = require('node:http')
const args = process.argv.slice(2)
const chunks = []
const ask = () => {
  const request = http.request('${url}', { method: 'POST' }, (response) => {
    let rest = ''
    response.setEncoding('utf8')
    response.on('data', (text) => {
      const lines = (rest + text).split('\\n')
      rest = lines.pop()
      for (const line of lines) {
        const { out, err, exit } = JSON.parse(line)
        if (out !== undefined) process.stdout.write(out)
        if (err !== undefined) process.stderr.write(err)
        if (exit !== undefined) process.exitCode = exit
      }
    })
    response.on('error', () => process.exit(1))
  })
  request.on('error', () => process.exit(1))
  request.end(JSON.stringify({ args, input: Buffer.concat(chunks).toString() }))
}
if (args.includes('oneshot') || args.at(-1) === 'api') {
  process.stdin.on('data', (chunk) => chunks.push(chunk))
  process.stdin.on('end', ask)
} else ask()
`

interface Printed {
  readonly out?: string
  readonly err?: string
  readonly exit?: number
}
interface StoredMessage {
  readonly id: number
  readonly conversation_id: string
  readonly sent_at_ms: number
}
interface Options {
  readonly conversation_id?: string
  readonly message_id?: number
  readonly message?: { readonly body?: string }
  readonly reply_to?: number
  readonly pagination?: { readonly num?: number }
}

/** Keybase, as its program `keybase` on this machine shows it. */
export class FakeKeybase implements FakePlatform {
  readonly channel = 'keybase'
  readonly secrets = [PAPER_KEY]
  readonly chats = { direct: DIRECT, group: GROUP }
  readonly person = ADA.uid
  readonly redelivers = true
  readonly removes = true
  readonly faults: ReadonlySet<PlatformFault['kind']> = new Set([
    'server_error',
    'permanent',
    'auth',
    'reset',
    'lost_answer',
  ])
  readonly typing: readonly string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  /** The arguments of each start of the program. */
  readonly started: (readonly string[])[] = []
  readonly #folder: string
  readonly #answersAtOnce: boolean
  readonly #shown = new Shown()
  readonly #messages: StoredMessage[] = []
  readonly #service = new Presence<ServerResponse>()
  readonly #listener = new Presence<ServerResponse>()
  #server: PlatformServer | undefined
  #user = ''
  #asked = 0
  #next = 1
  #time = Date.now()

  /** `answersAtOnce`: whoever asks for the service is never made to wait until it starts, as the program does it. */
  static async start({ answersAtOnce = false }: { readonly answersAtOnce?: boolean } = {}): Promise<FakeKeybase> {
    const fake = new FakeKeybase(await mkdtemp(join(tmpdir(), 'svc-keybase-')), answersAtOnce)
    fake.#server = await startPlatformServer(async ({ bytes }, response) => {
      await fake.#run(JSON.parse(Buffer.from(bytes).toString()) as { args: string[]; input: string }, response)
      return undefined
    })
    await writeFile(fake.program, script(process.execPath, fake.#server.origin), { mode: 0o755 })
    return fake
  }
  private constructor(folder: string, answersAtOnce: boolean) {
    this.#folder = folder
    this.#answersAtOnce = answersAtOnce
  }

  get program(): string {
    return join(this.#folder, 'keybase')
  }
  get config(): Readonly<Record<string, unknown>> {
    return { username: BOT, token: PAPER_KEY, program: this.program, folder: join(this.#folder, 'home') }
  }
  get wrongConfig() {
    return { ...this.config, token: 'another paper key' }
  }
  get sent() {
    return this.#shown.sent
  }
  waitForSent = (count: number) => this.#shown.waitForSent(count)
  fail = (fault: PlatformFault) => this.#shown.fail(fault)
  setWebhook = () => {}
  async waitForListener(): Promise<void> {
    await this.#listener.wait()
  }
  async disconnect(): Promise<void> {
    const listener = await this.#listener.wait()
    this.#listener.set(undefined)
    print(listener, { err: 'connection to service lost\n', exit: 2 })
  }
  /** Prints anything where messages are listened to. */
  printLine(text: string): void {
    if (this.#listener.value) write(this.#listener.value, { out: `${text}\n` })
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
    await rm(this.#folder, { recursive: true, force: true })
  }

  async deliver({ text, isGroup, mentionsBot, isOwn, editOf, redeliveryOf, replyTo }: PlatformInput): Promise<string> {
    const earlier = this.#messages.find((message) => idOf(message) === redeliveryOf)
    if (earlier) {
      this.#tell(earlier)
      return idOf(earlier)
    }
    const edited = editOf?.split(':')[1]
    const reply = replyTo?.split(':')[1]
    const content =
      edited === undefined
        ? {
            type: 'text',
            text: {
              body: mentionsBot ? `@${BOT} ${text}` : text,
              payments: null,
              ...(reply !== undefined && { replyTo: Number(reply) }),
            },
          }
        : { type: 'edit', edit: { messageID: Number(edited), body: text, userMentions: null } }
    const message = this.message(content, {
      conversation_id: isGroup ? GROUP : DIRECT,
      ...(isGroup && { channel: { name: 'acme', members_type: 'team', topic_type: 'chat', topic_name: 'general' } }),
      ...(isOwn && { sender: { uid: 'b', username: BOT, device_id: 'd', device_name: 'other' } }),
      ...(mentionsBot && { at_mention_usernames: [BOT] }),
    })
    this.#messages.push(message)
    this.#tell(message)
    return editOf ?? idOf(message)
  }
  /** A message of Ada. */
  message(content: object, more: object = {}): StoredMessage {
    this.#time = Math.max(Date.now(), this.#time + 1)
    const facts = {
      channel: { name: `${ADA.username},${BOT}`, members_type: 'impteamnative', topic_type: 'chat' },
      sender: { ...ADA, device_id: 'd1', device_name: 'phone' },
      sent_at: Math.floor(this.#time / 1000),
      content,
      prev: null,
      unread: true,
    }
    return {
      id: this.#next++,
      conversation_id: DIRECT,
      sent_at_ms: this.#time,
      ...facts,
      ...more,
    }
  }
  #tell(msg: object): void {
    this.printLine(JSON.stringify({ type: 'chat', source: 'remote', msg, pagination: {} }))
  }

  async #run({ args, input }: { readonly args: readonly string[]; readonly input: string }, response: ServerResponse) {
    this.started.push(args)
    if (args.some((arg) => arg.includes(PAPER_KEY))) this.violations.push('a paper key among the arguments')
    const { command, home } = commandOf(args)
    if (home !== this.config['folder']) this.violations.push(`the home ${home}`)
    switch (command) {
      case 'service':
        return this.#serve(response)
      case 'status --json':
        return this.#status(response)
      case 'chat api-listen':
        return this.#listen(response)
      case 'chat api':
        return this.#answer(input, response)
      case 'ctl stop --shutdown':
        this.#service.value?.end()
        return print(response, { exit: 0 })
      default:
        return this.#oneshot(command, input, response)
    }
  }

  #serve(response: ServerResponse): void {
    if (this.#service.value) return print(response, { err: 'the service is running already', exit: 2 })
    response.writeHead(200).flushHeaders()
    this.#service.set(response)
    response.on('close', () => {
      this.#service.remove(response)
      this.#user = ''
      this.#asked = 0
      this.#listener.value?.end()
    })
  }

  /** Without a service the first question is answered at once; who asks again waits for the one that starts. */
  async #status(response: ServerResponse): Promise<void> {
    if (!this.#service.value && (this.#answersAtOnce || this.#asked++ === 0))
      return print(response, { err: 'the service is not running', exit: 2 })
    await this.#service.wait()
    const status = { Username: this.#user, LoggedIn: this.#user !== '', Device: { name: 'paper' } }
    print(response, { out: JSON.stringify(status), exit: 0 })
  }

  #oneshot(command: string, input: string, response: ServerResponse): void {
    const [, username] = /^oneshot --username (\S+)$/.exec(command) ?? []
    if (username === undefined) return print(response, { out: '', exit: 0 })
    if (!this.#service.value || username !== BOT || input !== PAPER_KEY)
      return print(response, { err: 'ERROR bad paper key', exit: 2 })
    this.#user = username
    print(response, { exit: 0 })
  }

  #listen(response: ServerResponse): void {
    if (this.#user === '') return print(response, { err: 'Login required', exit: 2 })
    response.writeHead(200)
    write(response, { err: 'Listening for chat notifications. Config: {}, subscribeDevChannels: false\n' })
    this.#listener.set(response)
    response.on('close', () => this.#listener.remove(response))
  }

  #answer(input: string, response: ServerResponse): void {
    const { method = '', params } = JSON.parse(input) as { method?: string; params?: { options?: Options } }
    if (this.#user === '') return print(response, { out: refusal('Login required'), exit: 0 })
    const answer = this.#call(method, params?.options ?? {})
    if (answer === undefined) return void response.destroy()
    print(response, { out: `${answer}\n`, exit: 0 })
  }

  #call(method: string, options: Options): string | undefined {
    const { conversation_id: conversation = '', message_id: number, message } = options
    if (method === 'list') return result({ conversations: this.#conversations(), offline: false })
    if (conversation !== DIRECT && conversation !== GROUP) return this.#refuse(`no conversation ${conversation}`)
    const id = `${conversation}:${number}`
    switch (method) {
      case 'read':
        return result({ messages: this.#read(conversation, options.pagination?.num ?? 0) })
      case 'send':
        return this.#send(conversation, options)
      case 'edit':
        return this.#shown.edit(id, message?.body ?? '') ? result({ message: 'edited' }) : refusal('message not found')
      case 'delete':
        return this.#shown.remove(id) ? result({ message: 'deleted' }) : refusal('message was deleted')
      case 'reaction': {
        const emoji = REACTIONS[message?.body ?? '']
        if (emoji === undefined) return this.#refuse(`the reaction ${message?.body}`)
        this.reactions.push({ messageId: id, emoji })
        return result({ message: 'message sent', id: this.#next++ })
      }
      default:
        return this.#refuse(`the method ${method}`)
    }
  }

  #conversations() {
    return [DIRECT, GROUP].map((id) => {
      const times = this.#messages.flatMap((one) => (one.conversation_id === id ? [one.sent_at_ms] : []))
      return { id, channel: { name: 'x' }, unread: true, active_at: 0, active_at_ms: Math.max(0, ...times) }
    })
  }
  #read(conversation: string, num: number) {
    const found = this.#messages.filter((message) => message.conversation_id === conversation)
    return found
      .toReversed()
      .slice(0, num)
      .map((msg) => ({ msg }))
  }

  #send(conversation: string, { message, reply_to: replyTo }: Options): string | undefined {
    const fault = this.#shown.takeFault()
    if (fault?.kind === 'reset') return undefined
    if (fault?.kind === 'server_error') return refusal('network timeout: the server is away')
    if (fault?.kind === 'permanent') return refusal('you are blocked by ada')
    if (fault?.kind === 'auth') return refusal('Login required: you are not logged in')
    const body = message?.body ?? ''
    if (body === '' || Buffer.byteLength(body) > 10_000) return this.#refuse('a text that is empty or too long')
    const id = this.#next++
    this.#shown.show({
      id: `${conversation}:${id}`,
      chatId: conversation,
      text: body,
      replyTo: replyTo === undefined ? undefined : `${conversation}:${replyTo}`,
      files: [],
      buttons: [],
    })
    return fault ? undefined : result({ message: 'message sent', id, ratelimits: [{ tank: 'chat', capacity: 9000 }] })
  }

  #refuse(what: string): string {
    this.violations.push(what)
    return refusal(what)
  }
}

const result = (value: object): string => JSON.stringify({ result: value })
const refusal = (message: string): string => JSON.stringify({ error: { code: 0, message } })
const idOf = ({ conversation_id: conversation, id }: StoredMessage): string => `${conversation}:${id}`

function write(response: ServerResponse, printed: Printed): void {
  response.write(`${JSON.stringify(printed)}\n`)
}
function print(response: ServerResponse, printed: Printed): void {
  response.end(`${JSON.stringify(printed)}\n`)
}

const OPTIONS: ReadonlySet<string> = new Set(['--no-auto-fork', '--enable-bot-lite-mode', '--hide-exploding'])
/** The command without the options that every command has. */
function commandOf(args: readonly string[]): { readonly command: string; readonly home: string | undefined } {
  const words: string[] = []
  let home: string | undefined
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? ''
    if (word === '--home') home = args[++at]
    else if (word === '--log-file') at++
    else if (!OPTIONS.has(word)) words.push(word)
  }
  return { command: words.join(' '), home }
}
