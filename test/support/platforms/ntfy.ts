import type { ServerResponse } from 'node:http'
import { allFaults, Revocation } from './faults.ts'
import { resetConnection, Shown, startPlatformServer } from './http.ts'
import type { PlatformAnswer, PlatformCall, PlatformServer } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformFile, PlatformInput } from './platform.ts'

const TOKEN = 'tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2'
const TOPIC = 'svc-test'
const refuse = (http: number, code: number, error: string, headers = {}): PlatformAnswer => ({
  status: http,
  body: { code, http, error, link: 'https://ntfy.sh/docs' },
  headers,
})

interface Event {
  readonly id: string
  readonly time: number
  readonly expires: number
  readonly event: 'message'
  readonly topic: string
  readonly title?: string
  readonly message: string
  readonly tags?: readonly string[]
  readonly attachment?: object
}

/**
 * A protected topic of ntfy: https://docs.ntfy.sh/subscribe/api and /publish. What is published goes to everybody who
 * listens, the publisher included, and is kept for `since`.
 */
export class FakeNtfy implements FakePlatform {
  readonly channel = 'ntfy'
  readonly secrets = [TOKEN]
  readonly chats = { direct: TOPIC }
  readonly person = TOPIC
  readonly redelivers = true
  readonly revocation = new Revocation()
  readonly faults = allFaults
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions = []
  readonly violations: string[] = []
  readonly #shown = new Shown()
  readonly #server: PlatformServer
  readonly #events: Event[] = []
  readonly #files = new Map<string, PlatformFile>()
  readonly #streams = new Set<ServerResponse>()
  #listening = Promise.withResolvers<void>()
  #next = 1

  private constructor(server: PlatformServer) {
    this.#server = server
  }
  static async start(): Promise<FakeNtfy> {
    const held: { fake?: FakeNtfy } = {}
    const server = await startPlatformServer((call, response) => held.fake?.handle(call, response))
    held.fake = new FakeNtfy(server)
    return held.fake
  }

  get origin(): string {
    return this.#server.origin
  }
  get token(): string {
    return TOKEN
  }
  get config() {
    return { base_url: this.#server.origin, topic: TOPIC, token: TOKEN }
  }
  get wrongConfig() {
    return { ...this.config, token: 'tk_wrong' }
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
  waitForListener(): Promise<void> {
    return this.#listening.promise
  }
  async disconnect(): Promise<void> {
    await this.#listening.promise
    this.#listening = Promise.withResolvers()
    for (const stream of this.#streams) resetConnection(stream)
    this.#streams.clear()
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]()
  }

  async deliver({ text, files = [], isOwn, redeliveryOf }: PlatformInput): Promise<string> {
    const earlier = this.#events.find(({ id }) => id === redeliveryOf)
    if (earlier) {
      this.#write(earlier)
      return earlier.id
    }
    const [file] = files
    return this.#publish(TOPIC, text, file, isOwn ? ['svc'] : []).id
  }

  /** Answers one request. */
  handle(call: PlatformCall, response: ServerResponse): PlatformAnswer | undefined {
    const { pathname } = call.url
    const isFile = pathname.startsWith('/file/')
    if (call.headers.authorization !== `Bearer ${TOKEN}` || this.revocation.refuses())
      return refuse(401, 40_101, 'unauthorized')
    if (isFile) return this.#readFile(pathname)
    const [, topic = '', action = ''] = pathname.split('/')
    if (call.method === 'GET') return this.#get(topic, action, call, response)
    if (call.method !== 'POST' && call.method !== 'PUT') return this.#violation('method not allowed')
    return this.#post(topic, call, response)
  }

  #get(topic: string, action: string, call: PlatformCall, response: ServerResponse): PlatformAnswer | undefined {
    if (topic !== TOPIC) return refuse(403, 40_301, 'forbidden')
    if (action === 'auth') return { status: 200, body: { success: true } }
    if (action !== 'json') return this.#violation('page not found')
    response.writeHead(200, { 'content-type': 'application/x-ndjson; charset=utf-8' })
    response.write(`${JSON.stringify({ id: `o${this.#next++}`, time: now(), event: 'open', topic: TOPIC })}\n`)
    for (const event of this.#after(call.url.searchParams.get('since'))) response.write(`${JSON.stringify(event)}\n`)
    this.#streams.add(response)
    response.once('close', () => this.#streams.delete(response))
    this.#listening.resolve()
    return undefined
  }
  /** Everything after an id, or since a time; everything for an id that is not known, as the server does. */
  #after(since: string | null): readonly Event[] {
    if (since === null) return []
    if (/^\d{10}$/.test(since)) return this.#events.filter(({ time }) => time >= Number(since))
    const index = this.#events.findIndex(({ id }) => id === since)
    return this.#events.slice(index + 1)
  }

  #post(pathTopic: string, call: PlatformCall, response: ServerResponse): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    const answer = faultAnswer(fault)
    if (answer) return answer
    if (fault?.kind === 'reset') return resetConnection(response)
    const query = call.url.searchParams
    const json = (pathTopic === '' ? call.json : undefined) as
      | { topic?: string; message?: string; tags?: string[] }
      | undefined
    const topic = json?.topic ?? pathTopic
    if (!/^[-_A-Za-z0-9]{1,64}$/.test(topic)) return this.#violation('invalid topic')
    const name = query.get('filename')
    const file =
      name === null
        ? undefined
        : { kind: 'file' as const, name, mime: call.headers['content-type'] ?? '', bytes: call.bytes }
    const text = json?.message ?? query.get('message') ?? (file ? '' : Buffer.from(call.bytes).toString())
    if (Buffer.byteLength(text) > 4096) return this.#violation('the message would become a file')
    const header = (name: string): string | undefined => call.headers[name]?.toString()
    const tags = json?.tags ?? (query.get('tags') ?? header('tags'))?.split(',') ?? []
    const event = this.#publish(topic, text, file, tags, header('title'))
    this.#shown.show({ id: event.id, chatId: topic, text, files: file ? [file] : [], buttons: [] })
    return fault?.kind === 'lost_answer' ? resetConnection(response) : { status: 200, body: event }
  }

  #publish(
    topic: string,
    text: string,
    file: PlatformFile | undefined,
    tags: readonly string[],
    title?: string,
  ): Event {
    const id = `msg${String(this.#next++).padStart(9, '0')}`
    if (file) this.#files.set(id, file)
    const attachment = file && {
      name: file.name,
      type: file.mime,
      size: file.bytes.length,
      expires: now() + 3600,
      url: `${this.#server.origin}/file/${id}.bin`,
    }
    const message = text === '' && file ? `You received a file: ${file.name}` : text
    const event: Event = {
      id,
      time: now(),
      expires: now() + 43_200,
      event: 'message',
      topic,
      ...(title !== undefined && { title }),
      message,
      ...(tags.length > 0 && { tags }),
      ...(attachment && { attachment }),
    }
    this.#events.push(event)
    if (topic === TOPIC) this.#write(event)
    return event
  }
  #write(event: Event): void {
    for (const stream of this.#streams) stream.write(`${JSON.stringify(event)}\n`)
  }
  #readFile(pathname: string): PlatformAnswer {
    const file = this.#files.get(/^\/file\/(\w+)\.bin$/.exec(pathname)?.[1] ?? '')
    return file ? { status: 200, body: file.bytes } : refuse(404, 40_401, 'page not found')
  }
  #violation(what: string): PlatformAnswer {
    this.violations.push(what)
    return refuse(400, 40_000, what)
  }
}

function faultAnswer(fault: PlatformFault | undefined): PlatformAnswer | undefined {
  if (fault?.kind === 'rate_limit') {
    const seconds = fault.retryAfterSecs
    const headers = seconds === undefined ? {} : { 'retry-after': String(seconds) }
    return refuse(429, 42_901, 'limit reached: too many requests', headers)
  }
  if (fault?.kind === 'server_error') return refuse(500, 50_001, 'internal server error')
  if (fault?.kind === 'permanent') return refuse(413, 41_301, 'attachment too large')
  if (fault?.kind === 'auth') return refuse(401, 40_101, 'unauthorized')
  return undefined
}

function now(): number {
  return Math.floor(Date.now() / 1000)
}
