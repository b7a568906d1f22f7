import type { ServerResponse } from 'node:http'
import { allFaults, answerFault, fileOf } from './faults.ts'
import { resetConnection, Shown, startPlatformServer } from './http.ts'
import type { PlatformAnswer, PlatformCall, PlatformServer } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformFile, PlatformInput } from './platform.ts'
import { Presence } from './sockets.ts'

const KEY = 'gjA04ZYcqXKalvYMA8OeXSfzUOLrtbZv'
const BOT = { user_id: 12, full_name: 'Helper', email: 'helper-bot@zulip.test', is_bot: true }
const ADA = { user_id: 8, full_name: 'Ada', email: 'ada@zulip.test' }
/** Zulip knows none of its own bots by this request. */
const USERS = new Map<string, object>([
  ['8', { ...ADA, is_bot: false }],
  ['30', { user_id: 30, full_name: 'Build Bot', email: 'b@zulip.test', is_bot: true }],
])
const STREAM = { id: 42, name: 'general' }
const TOPIC = 'harbour'
const EMOJI: Readonly<Record<string, string>> = { '+1': '👍', eyes: '👀' }

interface Message {
  readonly id: number
  readonly type: 'stream' | 'private'
  readonly sender_id: number
  readonly sender_full_name: string
  readonly sender_email: string
  readonly stream_id?: number
  readonly subject: string
  readonly display_recipient: string | readonly object[]
  readonly content: string
  readonly timestamp: number
  readonly content_type: 'text/x-markdown'
  readonly flags: readonly string[]
}
interface NewMessage {
  readonly content: string
  readonly sender: typeof ADA
  readonly topic: string | undefined
  readonly flags?: readonly string[]
}
interface Queue {
  readonly id: string
  readonly events: { readonly id: number; readonly type: string }[]
  next: number
  /** A poll that waits for events. */
  waiting?: { readonly response: ServerResponse; readonly after: number } | undefined
}

const ok = (body: object = {}): PlatformAnswer => ({ status: 200, body: { result: 'success', msg: '', ...body } })
const refuse = (status: number, msg: string, more: object = {}): PlatformAnswer => ({
  status,
  body: { result: 'error', msg, code: 'BAD_REQUEST', ...more },
})
const INVALID_KEY = refuse(401, 'Invalid API key', { code: 'INVALID_API_KEY' })

/** An organization of Zulip: https://zulip.com/api/. Ada writes; the bot is subscribed to one channel. */
export class FakeZulip implements FakePlatform {
  readonly channel = 'zulip'
  readonly secrets = [KEY]
  readonly chats = { direct: `dm:${ADA.user_id}`, group: String(STREAM.id), thread: TOPIC }
  readonly person = String(ADA.user_id)
  readonly redelivers = true
  readonly faults = allFaults
  readonly removes = true
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  readonly #shown = new Shown()
  readonly #messages: Message[] = []
  readonly #files = new Map<string, PlatformFile>()
  readonly #listener = new Presence<Queue>()
  #queue: Queue | undefined
  #server: PlatformServer | undefined
  #next = 1

  static async start(): Promise<FakeZulip> {
    const fake = new FakeZulip()
    fake.#server = await startPlatformServer((call, response) => fake.#handle(call, response))
    return fake
  }

  get origin(): string {
    return this.#server?.origin ?? ''
  }
  get config() {
    return { base_url: this.origin, bot_email: BOT.email, token: KEY }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrongzulipkey' }
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
    await this.#listener.wait()
  }
  /** As after a restart of the server: the queue is gone. */
  async disconnect(): Promise<void> {
    const queue = await this.#listener.wait()
    this.#listener.remove(queue)
    this.#queue = undefined
    this.#answerPoll(queue, gone(queue.id))
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const known = this.#messages.find(({ id }) => String(id) === input.redeliveryOf)
    if (known) {
      this.#emit({ type: 'message', message: known, flags: known.flags })
      return String(known.id)
    }
    const edited = this.#messages.findIndex(({ id }) => String(id) === input.editOf)
    const earlier = this.#messages[edited]
    if (earlier) {
      this.#messages[edited] = { ...earlier, content: input.text }
      const change = { message_id: earlier.id, user_id: ADA.user_id, content: input.text, rendering_only: false }
      this.#emit({ type: 'update_message', ...change })
      return String(earlier.id)
    }
    const links = (input.files ?? []).map((file) => `[${file.name}](${this.#keep(file)})`)
    const text = input.mentionsBot ? `@**${BOT.full_name}** ${input.text}` : input.text
    const message = this.#message({
      content: [text, ...links].join('\n'),
      sender: input.isOwn ? BOT : ADA,
      topic: input.isGroup || input.threadId !== undefined ? (input.threadId ?? 'general') : undefined,
      flags: input.mentionsBot ? ['mentioned'] : [],
    })
    return String(message.id)
  }

  /** A direct message of a program. */
  writeAsBot(content: string, fields: Partial<Message> & { readonly sender_realm_str?: string }): void {
    const written = this.#toMessage({ content, sender: ADA, topic: undefined })
    const message = { ...written, sender_full_name: 'Bot', sender_email: 'b@zulip.test', ...fields }
    this.#emit({ type: 'message', message, flags: [] })
  }

  /** An event that is no message, such as the move of one to another topic. */
  emit(event: { readonly type: string; readonly [field: string]: unknown }): void {
    this.#emit(event)
  }

  #message(given: NewMessage): Message {
    const message = this.#toMessage(given)
    this.#messages.push(message)
    this.#emit({ type: 'message', message, flags: message.flags })
    return message
  }
  #toMessage(given: NewMessage): Message {
    const { sender, topic, content, flags = [] } = given
    return {
      id: this.#next++,
      type: topic === undefined ? 'private' : 'stream',
      sender_id: sender.user_id,
      sender_full_name: sender.full_name,
      sender_email: sender.email,
      ...(topic !== undefined && { stream_id: STREAM.id }),
      subject: topic ?? '',
      display_recipient: topic === undefined ? [ADA, BOT].map((each) => ({ ...each, id: each.user_id })) : STREAM.name,
      content,
      timestamp: 1_763_640_000 + this.#next,
      content_type: 'text/x-markdown',
      flags,
    }
  }
  #keep(file: PlatformFile): string {
    const path = `/user_uploads/2/${this.#next++}/${encodeURIComponent(file.name)}`
    this.#files.set(path, file)
    return path
  }

  #emit(event: { readonly type: string; readonly [field: string]: unknown }): void {
    const queue = this.#queue
    if (!queue) return
    queue.events.push({ ...event, id: queue.next++ })
    if (queue.waiting) this.#answerPoll(queue, ok({ events: queue.events.filter(({ id }) => id > after(queue)) }))
  }
  #answerPoll(queue: Queue, { status, body }: PlatformAnswer): void {
    const { response } = queue.waiting ?? {}
    queue.waiting = undefined
    response?.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }

  async #handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { method, url } = call
    const file = this.#files.get(url.pathname.replace(/^\/temporary/, ''))
    if (method === 'GET' && file)
      return { status: 200, body: new Uint8Array(file.bytes), headers: { 'content-type': file.mime } }
    const basic = Buffer.from(`${BOT.email}:${KEY}`).toString('base64')
    if (call.headers.authorization !== `Basic ${basic}`) return INVALID_KEY
    const route = `${method} ${url.pathname.replace(/^\/api\/v1/, '')}`
    const fields = new URLSearchParams(method === 'GET' ? url.search : Buffer.from(call.bytes).toString())
    if (route === 'GET /users/me') return ok(BOT)
    const [, user] = /^GET \/users\/(\d+)$/.exec(route) ?? []
    if (user !== undefined) return USERS.has(user) ? ok({ user: USERS.get(user) }) : refuse(400, 'No such user')
    if (route === 'POST /register') return this.#register(fields)
    if (route === 'GET /events') return this.#poll(fields, response)
    if (route === 'GET /messages') return this.#list(fields)
    if (route === 'POST /messages') return this.#create(fields, response)
    if (route === 'POST /typing') return this.#type(fields)
    if (route === 'POST /user_uploads') return this.#upload(call)
    if (route.startsWith('GET /user_uploads/')) return this.#address(route.slice('GET '.length))
    const [, verb = '', id = '', rest = ''] = /^(\w+) \/messages\/(\d+)(\/reactions)?$/.exec(route) ?? []
    return this.#ofMessage(`${verb}${rest}`, id, fields) ?? this.#violation(`the request ${route}`)
  }

  #register(fields: URLSearchParams): PlatformAnswer {
    if (fields.get('event_types') !== '["message","update_message"]' || fields.get('apply_markdown') !== 'false')
      return this.#violation('the fields of a queue')
    this.#queue = { id: `q-${this.#next++}`, events: [], next: 0 }
    return ok({ queue_id: this.#queue.id, last_event_id: -1, event_queue_longpoll_timeout_seconds: 90 })
  }
  #poll(fields: URLSearchParams, response: ServerResponse): PlatformAnswer | undefined {
    const queue = this.#queue
    if (!queue || fields.get('queue_id') !== queue.id) return gone(fields.get('queue_id') ?? '')
    const last = Number(fields.get('last_event_id'))
    if (!Number.isInteger(last)) return this.#violation('last_event_id')
    const events = queue.events.filter(({ id }) => id > last)
    this.#listener.set(queue)
    if (events.length > 0) return ok({ events })
    queue.waiting = { response, after: last }
    response.once('close', () => {
      if (queue.waiting?.response === response) queue.waiting = undefined
    })
    return undefined
  }

  #list(fields: URLSearchParams): PlatformAnswer {
    const anchor = fields.get('anchor')
    if (anchor === 'newest') return ok({ messages: this.#messages.slice(-1), found_newest: true })
    const limit = Number(fields.get('num_after'))
    if (fields.get('include_anchor') !== 'false' || !(limit > 0 && limit <= 5000)) return this.#violation('a list')
    const later = this.#messages.filter(({ id }) => id > Number(anchor))
    return ok({ messages: later.slice(0, limit), found_newest: later.length <= limit })
  }

  #create(fields: URLSearchParams, response: ServerResponse): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer')
      return answerFault(fault, response, {
        rate_limit: (seconds) =>
          refuse(429, 'API usage exceeded rate limit', {
            code: 'RATE_LIMIT_HIT',
            ...(seconds !== undefined && { 'retry-after': seconds }),
          }),
        server_error: refuse(500, 'Internal server error'),
        permanent: refuse(400, 'Not authorized to send to channel'),
        auth: INVALID_KEY,
      })
    const content = fields.get('content') ?? ''
    const to: unknown = JSON.parse(fields.get('to') ?? 'null')
    const isDirect = fields.get('type') === 'direct'
    if (content.trim() === '') return this.#violation('Message must not be empty')
    // As the server counts: code points.
    if ([...content].length > 10_000) return this.#violation('the message would be cut')
    if (
      isDirect
        ? !(Array.isArray(to) && to.every(Number.isInteger))
        : fields.get('type') !== 'stream' || to !== STREAM.id
    )
      return this.#violation('a destination that is none')
    const topic = isDirect ? undefined : (fields.get('topic') ?? '')
    if (topic !== undefined && (topic === '' || [...topic].length > 60)) return this.#violation('a topic that is none')
    const message = this.#message({ content, sender: BOT, topic })
    const paths = [...content.matchAll(/\]\((\/user_uploads\/[^)]+)\)/g)].map(([, path = '']) => path)
    this.#shown.show({
      id: String(message.id),
      chatId: isDirect ? `dm:${(to as number[]).join(',')}` : String(to),
      threadId: topic,
      text: content,
      files: paths.flatMap((path) => this.#files.get(path) ?? []),
      buttons: [],
    })
    return fault ? resetConnection(response) : ok({ id: message.id })
  }

  #ofMessage(action: string, id: string, fields: URLSearchParams): PlatformAnswer | undefined {
    const message = this.#messages.find((each) => String(each.id) === id)
    if (action !== '' && !message) return refuse(400, 'Invalid message(s)')
    if (action === 'GET') return ok({ message })
    if (action === 'POST/reactions') {
      this.reactions.push({ messageId: id, emoji: EMOJI[fields.get('emoji_name') ?? ''] ?? '' })
      return ok()
    }
    if (action === 'PATCH')
      return this.#shown.edit(id, fields.get('content') ?? '') ? ok() : refuse(400, 'no permission')
    if (action !== 'DELETE') return undefined
    this.#messages.splice(
      this.#messages.findIndex((each) => String(each.id) === id),
      1,
    )
    return this.#shown.remove(id) ? ok() : refuse(400, 'no permission')
  }

  #type(fields: URLSearchParams): PlatformAnswer {
    if (fields.get('op') !== 'start') return this.#violation('typing')
    const isDirect = fields.get('type') === 'direct'
    this.typing.push(
      isDirect ? `dm:${JSON.parse(fields.get('to') ?? '[]').join(',')}` : (fields.get('stream_id') ?? ''),
    )
    return ok()
  }
  async #upload(call: PlatformCall): Promise<PlatformAnswer> {
    const file = (await call.form()).get('filename')
    return file instanceof File
      ? ok({ url: this.#keep(await fileOf(file)) })
      : this.#violation('an upload without a file')
  }
  #address(path: string): PlatformAnswer {
    return this.#files.has(path) ? ok({ url: `/temporary${path}` }) : refuse(404, 'File not found')
  }

  #violation(what: string): PlatformAnswer {
    this.violations.push(what)
    return refuse(400, what)
  }
}

const after = ({ waiting }: Queue): number => waiting?.after ?? -1
const gone = (id: string): PlatformAnswer =>
  refuse(400, `Bad event queue ID: ${id}`, { code: 'BAD_EVENT_QUEUE_ID', queue_id: id })
