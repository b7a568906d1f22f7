import type { ServerResponse } from 'node:http'
import { allFaults, answerFault } from './faults.ts'
import { resetConnection, Shown, startPlatformServer } from './http.ts'
import type { PlatformAnswer, PlatformCall, PlatformServer } from './http.ts'
import { signToken } from './json-web-token.ts'
import type {
  FakePlatform,
  PlatformFault,
  PlatformFile,
  PlatformInput,
  PlatformRequest,
  WebhookTarget,
} from './platform.ts'

const TOKEN = '632542db-1a23-4e06-8b39-01f8b0868d57'
const APP = '2c1b7a52-7b0e-4a51-9f55-0d5f1f4f8a11'
const SECRET = '597911b9-ea5b-4d2a-9d01-000000000000'
const ADA = 'u:ada0000000000001'
const BOT = 'u:bot0000000000002'
const MEMBER = 'u:member0000000003'
const CHANNEL = 'g:general'

const failed = (status: number, error: string, headers = {}): PlatformAnswer => ({
  status,
  headers,
  body: { error, description: `${error} happened` },
})
const INVALID_TOKEN = failed(403, 'InvalidToken')

/** The API and the events of Flock: https://docs.flock.com/display/flockos/Methods */
export class FakeFlock implements FakePlatform {
  readonly channel = 'flock'
  readonly secrets = [TOKEN, SECRET]
  readonly chats = { direct: ADA }
  readonly person = ADA
  readonly redelivers = true
  readonly faults = allFaults
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  readonly #shown = new Shown()
  readonly #events = new Map<string, PlatformRequest>()
  readonly #files = new Map<string, PlatformFile>()
  #server: PlatformServer | undefined
  #target: WebhookTarget | undefined
  #next = 1

  static async start(): Promise<FakeFlock> {
    const fake = new FakeFlock()
    fake.#server = await startPlatformServer((call, response) => fake.#handle(call, response))
    return fake
  }

  get origin(): string {
    return this.#server?.origin ?? ''
  }
  get config() {
    return { token: TOKEN, app_id: APP, app_secret: SECRET, on_behalf_of: MEMBER, base_url: `${this.origin}/v1` }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrong-bot-token' }
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
  setWebhook(target: WebhookTarget): void {
    this.#target = target
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const id = input.redeliveryOf ?? `1763640000${this.#next++}-6QpQpe-mh104`
    // What the bot writes is not sent to it.
    if (input.isOwn) return id
    const request = this.#events.get(id) ?? this.signed(this.received(id, input.text, input.files))
    this.#events.set(id, request)
    await this.post(request)
    return id
  }
  async post(request: PlatformRequest): Promise<void> {
    const { status, body } = (await this.#target?.(request)) ?? { status: 0, body: '' }
    if (status !== 200 || body !== '{}') throw new Error(`the webhook answered ${status}`)
  }
  received(uid: string, text: string, files: readonly PlatformFile[] = []) {
    const message = {
      type: 'CHAT',
      id: `client-${uid}`,
      uid,
      from: ADA,
      to: BOT,
      text,
      timestamp: 1_763_640_000_123,
      ...(files.length > 0 && { attachments: [{ title: 'Files', downloads: files.map((file) => this.#keep(file)) }] }),
    }
    return { name: 'chat.receiveMessage', userId: ADA, message }
  }
  command(more: object = {}) {
    const command = { command: 'ask', text: 'for coffee', userName: 'Ada', chatName: 'General', locale: 'en-us' }
    return { name: 'client.slashCommand', userId: ADA, chat: CHANNEL, ...command, ...more }
  }
  /** An event with the token that Flock makes for it. */
  signed(event: object, claims: object = {}, secret = SECRET): PlatformRequest {
    const now = Math.floor(Date.now() / 1000)
    const good = { appId: APP, userId: ADA, iat: now, exp: now + 600, jti: `jti-${this.#next++}` }
    return {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-flock-event-token': signToken({ ...good, ...claims }, secret) },
      body: Buffer.from(JSON.stringify(event)),
    }
  }
  forgeries(): readonly PlatformRequest[] {
    const event = this.received('forged', 'forged')
    const good = this.signed(event)
    return [
      { ...good, headers: {} },
      { ...good, headers: { 'x-flock-event-token': 'abc' } },
      this.signed(event, {}, 'another secret'),
      this.signed(event, { appId: 'another app' }),
      this.signed(event, { userId: MEMBER }),
      this.signed(event, { exp: Math.floor(Date.now() / 1000) - 600 }),
      this.signed(event, { exp: undefined }),
      { ...good, body: Buffer.from(JSON.stringify({ ...event, userId: MEMBER })) },
      this.signed({ ...event, userId: undefined }),
    ]
  }

  #keep(file: PlatformFile) {
    const path = `/files/${this.#next++}`
    this.#files.set(path, file)
    return { src: `${this.origin}${path}`, filename: file.name, mime: file.mime, size: file.bytes.byteLength }
  }

  async #handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { pathname } = call.url
    const file = this.#files.get(pathname)
    if (file) return { status: 200, body: file.bytes, headers: { 'content-type': file.mime } }
    if (pathname !== '/v1/chat.sendMessage') return this.#violation(`the request ${pathname}`, 'NoSuchMethod')
    if (call.url.search !== '') return this.#violation('fields in the address')
    const fields = new URLSearchParams(Buffer.from(call.bytes).toString())
    if (fields.get('token') !== TOKEN) return INVALID_TOKEN
    const to = fields.get('to')
    const text = fields.get('text') ?? ''
    if (to === null) return failed(400, 'InvalidParameter')
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer')
      return answerFault(fault, response, {
        rate_limit: (seconds) =>
          failed(429, 'TooManyRequests', seconds === undefined ? {} : { 'retry-after': String(seconds) }),
        server_error: failed(500, 'InternalServerError'),
        permanent: failed(400, 'UnknownRecipient'),
        auth: failed(403, 'AppDisabled'),
      })
    if (text === '') return this.#violation('a message without a text', 'MissingTextOrAttachment')
    if (to === CHANNEL && fields.get('onBehalfOf') !== MEMBER) return this.#violation('a channel without onBehalfOf')
    if (to !== ADA && to !== CHANNEL) return this.#violation(`the recipient ${to}`, 'UnknownRecipient')
    const uid = `uid-${this.#next++}`
    this.#shown.show({ id: uid, chatId: to, text, files: [], buttons: [] })
    return fault ? resetConnection(response) : { status: 200, body: { uid } }
  }
  #violation(what: string, error = 'InvalidParameter'): PlatformAnswer {
    this.violations.push(what)
    return failed(400, error)
  }
}
