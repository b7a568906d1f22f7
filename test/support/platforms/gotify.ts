import type { IncomingMessage } from 'node:http'
import type { ServerResponse } from 'node:http'
import { allFaults, answerFault } from './faults.ts'
import { resetConnection, Shown } from './http.ts'
import type { PlatformAnswer, PlatformCall, PlatformServer } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformInput } from './platform.ts'
import { Presence, startSocketServer } from './sockets.ts'
import type { AcceptPeer, Peer } from './sockets.ts'

const APP_TOKEN = 'AgBbR2.ebx5eVwe'
const CLIENT_TOKEN = 'CAgoLzWwUW9aVzF'
const OWN_APP = 3
const PERSON_APP = 7
const MAX_BYTES = 65_535

interface Message {
  readonly id: number
  readonly appid: number
  readonly message: string
  readonly title: string
  readonly priority: number
  readonly extras?: unknown
  readonly date: string
}

const refuse = (status: number, errorDescription: string, headers = {}): PlatformAnswer => ({
  status,
  body: { error: STATUS[status] ?? '', errorCode: status, errorDescription },
  headers,
})
const STATUS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  404: 'Not Found',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
}
const UNAUTHORIZED = refuse(401, 'you need to provide a valid access token or user credentials to access this api')

/**
 * A user of a Gotify server: https://gotify.net/api-docs. What any application of the user sends goes to every client,
 * that of the bot included.
 */
export class FakeGotify implements FakePlatform {
  readonly channel = 'gotify'
  readonly secrets = [APP_TOKEN, CLIENT_TOKEN]
  readonly chats = { direct: String(PERSON_APP) }
  readonly person = String(PERSON_APP)
  readonly redelivers = true
  readonly faults = allFaults
  readonly answersInJson = true
  readonly removes = true
  readonly typing: string[] = []
  readonly reactions = []
  readonly violations: string[] = []
  readonly #shown = new Shown()
  readonly #messages: Message[] = []
  readonly #peer = new Presence<Peer>()
  #server: PlatformServer | undefined
  #next = 1

  static async start(): Promise<FakeGotify> {
    const fake = new FakeGotify()
    fake.#server = await startSocketServer(
      (call, response) => fake.#handle(call, response),
      (peer, request) => fake.#accept(peer, request),
    )
    return fake
  }

  get origin(): string {
    return this.#server?.origin ?? ''
  }
  get config() {
    return { base_url: this.origin, token: APP_TOKEN, client_token: CLIENT_TOKEN }
  }
  get wrongConfig() {
    return { ...this.config, client_token: 'Cwrong' }
  }
  get sent() {
    return this.#shown.sent
  }
  waitForSent(count: number) {
    return this.#shown.waitForSent(count)
  }
  fail(fault: PlatformFault): void {
    this.#shown.fail(fault)
  }
  setWebhook(): void {}
  async waitForListener(): Promise<void> {
    await this.#peer.wait()
  }
  async disconnect(): Promise<void> {
    const peer = await this.#peer.wait()
    this.#peer.remove(peer)
    peer.cut()
  }
  /** Sends anything to the client. */
  sendFrame(frame: unknown): void {
    this.#peer.value?.send(frame)
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }

  async deliver({ text, isOwn, redeliveryOf }: PlatformInput): Promise<string> {
    const earlier = this.#messages.find(({ id }) => String(id) === redeliveryOf)
    if (earlier) {
      this.#peer.value?.send(earlier)
      return String(earlier.id)
    }
    if (isOwn) return String(this.#post(OWN_APP, { message: text, extras: { 'svc::message::sent': 'before' } }).id)
    return String(this.#post(PERSON_APP, { message: text }).id)
  }

  /** Another application sends a message with a title. */
  alert(title: string, message: string): void {
    this.#post(PERSON_APP, { title, message })
  }

  /** As the application with this id. */
  #post(appid: number, body: { readonly [field: string]: unknown }): Message {
    const message = {
      id: this.#next++,
      appid,
      message: String(body['message']),
      // As createMessage of api/message.go of github.com/gotify/server does.
      title: String(body['title'] ?? APPLICATIONS.find(({ id }) => id === appid)?.name),
      priority: Number(body['priority'] ?? 0),
      ...(body['extras'] !== undefined && { extras: body['extras'] }),
      date: new Date().toISOString(),
    }
    this.#messages.push(message)
    this.#peer.value?.send(message)
    return message
  }

  #accept(peer: Peer, request: IncomingMessage): ReturnType<AcceptPeer> {
    if (request.url !== '/stream') return this.#refuseSocket('the path of the stream')
    if (request.headers['x-gotify-key'] !== CLIENT_TOKEN) return this.#refuseSocket('the token of the stream')
    this.#peer.set(peer)
    return {
      frame: () => this.violations.push('a frame of a client'),
      closed: () => this.#peer.remove(peer),
    }
  }
  #refuseSocket(what: string): number {
    this.violations.push(what)
    return 1008
  }

  #handle(call: PlatformCall, response: ServerResponse): PlatformAnswer | undefined {
    const { method, url, headers } = call
    const key = headers['x-gotify-key']
    if (method === 'POST' && url.pathname === '/message')
      return key === APP_TOKEN ? this.#create(call, response) : UNAUTHORIZED
    if (key !== CLIENT_TOKEN) return UNAUTHORIZED
    if (method === 'DELETE') return this.#remove(/^\/message\/(\d+)$/.exec(url.pathname)?.[1])
    const read = { '/current/user': () => USER, '/application': () => APPLICATIONS, '/message': () => this.#page(url) }
    const answer = method === 'GET' ? read[url.pathname as keyof typeof read]?.() : undefined
    return answer ? { status: 200, body: answer } : this.#violation(404, `${method} ${url.pathname}`)
  }

  #create(call: PlatformCall, response: ServerResponse): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer')
      return answerFault(fault, response, {
        rate_limit: (seconds) =>
          refuse(429, 'too many requests', seconds === undefined ? {} : { 'retry-after': String(seconds) }),
        server_error: refuse(500, 'database is locked'),
        permanent: refuse(400, "Field 'message' is not valid"),
        auth: UNAUTHORIZED,
      })
    const body = call.json as Record<string, unknown> | undefined
    if (typeof body?.['message'] !== 'string' || body['message'] === '')
      return this.#violation(400, "Field 'message' is required")
    if (Buffer.byteLength(body['message']) > MAX_BYTES)
      return this.#violation(500, "Data too long for column 'message'")
    const wrongKey = Object.keys(Object(body['extras'])).find((key) => !/^\w+(::\w+)+$/.test(key))
    if (wrongKey !== undefined) return this.#violation(400, `the key ${wrongKey} of the extras`)
    const message = this.#post(OWN_APP, body)
    const chatId = this.chats.direct
    this.#shown.show({ id: String(message.id), chatId, text: message.message, files: [], buttons: [] })
    return fault ? resetConnection(response) : { status: 200, body: message }
  }

  #page(url: URL): object | undefined {
    const limit = Number(url.searchParams.get('limit') ?? 100)
    const since = Number(url.searchParams.get('since') ?? 0)
    if (!(limit >= 1 && limit <= 200)) return undefined
    const all = this.#messages.filter(({ id }) => since === 0 || id < since).toReversed()
    const messages = all.slice(0, limit)
    const hasMore = all.length > limit
    const next = hasMore ? (messages.at(-1)?.id ?? 0) : 0
    return { paging: { size: messages.length, limit, since: next }, messages }
  }

  #remove(id: string | undefined): PlatformAnswer {
    const index = this.#messages.findIndex((message) => String(message.id) === id)
    if (index === -1) return refuse(404, 'message does not exist')
    this.#messages.splice(index, 1)
    this.#shown.remove(id ?? '')
    return { status: 200 }
  }

  #violation(status: number, what: string): PlatformAnswer {
    this.violations.push(what)
    return refuse(status, what)
  }
}

const USER = { id: 1, name: 'ada', admin: false }
const APPLICATIONS = [
  { id: OWN_APP, name: 'svc', description: '', internal: false, image: 'static/defaultapp.png' },
  { id: PERSON_APP, name: 'Front door', description: '', internal: false, image: 'static/defaultapp.png' },
]
