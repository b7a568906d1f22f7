import type { ServerResponse } from 'node:http'
import { allFaults, answerFault, fileOf } from './faults.ts'
import { resetConnection, Shown } from './http.ts'
import type { PlatformAnswer, PlatformCall } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformFile, PlatformInput } from './platform.ts'
import { Presence, startSocketServer } from './sockets.ts'
import type { Peer, PeerHandlers } from './sockets.ts'

const TOKEN = 'fake-revolt-bot-token_0123456789'
const BOT = { _id: '01HZZZZZZZZZZZZZZZZZZZZBOT', username: 'svc', discriminator: '0001', bot: { owner: 'x' } }
const ADA = { _id: '01HZZZZZZZZZZZZZZZZZZZZADA', username: 'ada', discriminator: '1815', display_name: 'Ada' }
const DIRECT = '01HZZZZZZZZZZZZZZZZZZDRECT'
const GROUP = '01HZZZZZZZZZZZZZZZZZGRPPPP'
const SERVER = '01HZZZZZZZZZZZZZZZZZSERVER'
const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const START_MS = 1_763_640_000_000

interface Message {
  readonly _id: string
  readonly nonce?: string | undefined
  readonly channel: string
  readonly author: string
  readonly content?: string | undefined
  readonly edited?: string
  readonly [field: string]: unknown
}
interface Body {
  content?: string
  attachments?: string[]
  replies?: { id?: string; mention?: boolean; fail_if_not_exists?: boolean }[]
}

export interface FakeRevolt extends FakePlatform {
  /** Types of the frames of the adapter. */
  readonly frames: readonly string[]
  /** Sends an event to the adapter. */
  sendEvent(event: unknown): void
  ignorePings(): void
  /** A message in the group, of any form. */
  post(message: Readonly<Record<string, unknown>>): string
  /** A channel whose history the bot may not read. */
  closeHistory(channel: string): void
  /** Lists of messages are answered when this settles. */
  waitBeforeLists(wait: Promise<void>): void
  /** The next message is written so much later. */
  passTime(ms: number): void
  /** What the API tells of its other addresses. */
  addresses: { ws: string; autumn: string } | undefined
  /** The next message is refused with this answer. Its key is used up. */
  answerNext(status: number, body: unknown): void
}

/** The API and the events of Stoat. Source: https://github.com/stoatchat/stoatchat */
export async function startFakeRevolt(): Promise<FakeRevolt> {
  const fake = new Revolt()
  const server = await startSocketServer(
    (call, response) => fake.handle(call, response),
    (peer, request) => fake.accept(peer, request.url ?? ''),
  )
  fake.origin = server.origin
  return Object.assign(fake, { [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() })
}

class Revolt implements Omit<FakeRevolt, typeof Symbol.asyncDispose> {
  readonly channel = 'revolt'
  readonly secrets = [TOKEN]
  readonly chats = { direct: DIRECT, group: GROUP }
  readonly person = ADA._id
  readonly redelivers = true
  readonly faults = allFaults
  readonly removes = true
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  readonly frames: string[] = []
  origin = ''
  addresses: { ws: string; autumn: string } | undefined
  readonly #shown = new Shown()
  readonly #messages: Message[] = []
  readonly #files = new Map<string, PlatformFile>()
  readonly #keys = new Set<string>()
  readonly #closed = new Set<string>()
  readonly #listener = new Presence<Peer>()
  #answer: PlatformAnswer | undefined
  #isIgnoringPings = false
  #listsWait = Promise.resolve()
  #next = 1

  get config() {
    return { token: TOKEN, base_url: this.origin }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrong-revolt-token' }
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
    const peer = this.#listener.value
    this.#listener.set(undefined)
    peer?.cut()
  }
  sendEvent = (event: unknown) => this.#listener.value?.send(event)
  ignorePings(): void {
    this.#isIgnoringPings = true
  }
  waitBeforeLists(wait: Promise<void>): void {
    this.#listsWait = wait
  }
  closeHistory(channel: string): void {
    this.#closed.add(channel)
  }
  passTime(ms: number): void {
    this.#next += ms
  }
  answerNext(status: number, body: unknown): void {
    this.#answer = { status, body }
  }

  async deliver(input: PlatformInput): Promise<string> {
    const again = this.#messages.find(({ _id: id }) => id === input.redeliveryOf)
    if (again) {
      this.#emit(again)
      return again._id
    }
    const content = input.mentionsBot ? `<@${BOT._id}> ${input.text}` : input.text
    const index = this.#messages.findIndex(({ _id: id }) => id === input.editOf)
    const old = this.#messages[index]
    if (old) {
      const data = { content, edited: '2026-11-20T12:01:00.000Z' }
      this.#messages[index] = { ...old, ...data }
      this.sendEvent({ type: 'MessageUpdate', id: old._id, channel: old.channel, data, clear: [] })
      return old._id
    }
    const author = input.isOwn ? BOT : ADA
    return this.post({
      channel: input.isGroup ? GROUP : DIRECT,
      author: author._id,
      content,
      ...(input.mentionsBot && { mentions: [BOT._id] }),
      ...(input.replyTo !== undefined && { replies: [input.replyTo] }),
      ...(input.files && { attachments: input.files.map((file) => this.#describe(this.#keep(file), file)) }),
    })
  }

  post(given: Readonly<Record<string, unknown>>): string {
    const message: Message = { channel: GROUP, author: ADA._id, ...given, _id: this.#id() }
    this.#messages.push(message)
    this.#emit(message)
    return message._id
  }

  /** Events come with who wrote the message. */
  #emit(message: Message): void {
    const user = [BOT, ADA].find(({ _id: id }) => id === message.author)
    this.sendEvent({ type: 'Message', ...message, ...(user && { user }), ...this.#memberOf(message) })
  }
  #memberOf({ channel, author }: Message) {
    return channel === GROUP && { member: { _id: { server: SERVER, user: author }, roles: ['01HROLE'] } }
  }

  #id(): string {
    let rest = START_MS + this.#next++
    let time = ''
    for (let place = 0; place < 10; place++) {
      time = `${DIGITS[rest % 32]}${time}`
      rest = Math.floor(rest / 32)
    }
    return `${time}${'Z'.repeat(16)}`
  }
  #keep(file: PlatformFile): string {
    const id = `file${this.#next++}`
    this.#files.set(id, file)
    return id
  }
  #describe(id: string, { name, mime, bytes }: PlatformFile) {
    const metadata = { type: 'File' }
    return { _id: id, tag: 'attachments', filename: name, metadata, content_type: mime, size: bytes.length }
  }

  // The events

  accept(peer: Peer, address: string): PeerHandlers | number {
    const { pathname, searchParams: query } = new URL(address, this.origin)
    if (pathname !== '/events' || query.get('version') !== '1' || query.get('format') !== 'json') return 1002
    const token = query.get('token')
    // As the platform's own client does.
    if (token !== null) this.#begin(peer, token, query)
    return {
      frame: (raw) => {
        const frame = (raw ?? {}) as { type?: string; token?: string; channel?: string; data?: unknown }
        this.frames.push(frame.type ?? '')
        if (frame.type === 'Authenticate') this.#begin(peer, frame.token, query)
        else if (frame.type === 'Ping' && typeof frame.data === 'number') {
          if (!this.#isIgnoringPings) peer.send({ type: 'Pong', data: frame.data })
        } else if (frame.type === 'BeginTyping') this.typing.push(frame.channel ?? '')
        else this.violations.push(`the frame ${JSON.stringify(raw)}`)
      },
      closed: () => this.#listener.remove(peer),
    }
  }

  #begin(peer: Peer, token: string | undefined, query: URLSearchParams): void {
    if (token !== TOKEN) {
      peer.send({ type: 'Error', data: { type: 'InvalidSession', location: 'websocket.rs' } })
      return peer.close(1000)
    }
    peer.send({ type: 'Authenticated' })
    const rest = { users: [{ ...BOT, relationship: 'User' }, ADA], servers: [], members: [], emojis: [] }
    const all = { ...rest, channels: this.#channels(), voice_states: [], policy_changes: [] }
    peer.send({ type: 'Ready', ...(query.has('ready') ? { channels: this.#channels() } : all) })
    this.#listener.set(peer)
  }

  #channels() {
    const lastOf = (channel: string) => ({
      last_message_id: this.#messages.findLast((message) => message.channel === channel)?._id,
    })
    const direct = { _id: DIRECT, channel_type: 'DirectMessage', active: true, recipients: [BOT._id, ADA._id] }
    const group = { _id: GROUP, channel_type: 'TextChannel', server: SERVER, name: 'General' }
    return [
      { ...direct, ...lastOf(DIRECT) },
      { ...group, ...lastOf(GROUP) },
    ]
  }

  // The API

  async handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { method, url, headers } = call
    const route = `${method} ${url.pathname}`
    if (route === 'GET /') return { status: 200, body: this.#node() }
    const [, file = '', name = ''] = /^GET \/autumn\/attachments\/(\w+)\/(.+)$/.exec(route) ?? []
    if (file !== '') return this.#download(call, file, decodeURIComponent(name))
    if (headers['x-bot-token'] !== TOKEN) return problem(401, 'InvalidSession')
    if (route === 'GET /users/@me') return { status: 200, body: BOT }
    if (route === `GET /users/${ADA._id}`) return { status: 200, body: ADA }
    if (route === 'POST /autumn/attachments') return this.#upload(call)
    const [, channel = '', rest = ''] = /^\/channels\/([^/]+)(.*)$/.exec(url.pathname) ?? []
    const known = this.#channels().find(({ _id: id }) => id === channel)
    if (!known) return problem(404, 'NotFound')
    if (method === 'GET' && rest === '') return { status: 200, body: known }
    if (method === 'GET' && rest === '/messages') {
      await this.#listsWait
      return this.#list(channel, url.searchParams)
    }
    if (method === 'POST' && rest === '/messages') return this.#create(call, response, channel)
    return this.#ofMessage(call, channel, rest)
  }

  #node() {
    const { ws = `${this.origin.replace('http', 'ws')}/events`, autumn = `${this.origin}/autumn` } =
      this.addresses ?? {}
    return { revolt: '0.11.0', ws, features: { autumn: { enabled: true, url: autumn } } }
  }

  #ofMessage(call: PlatformCall, channel: string, rest: string): PlatformAnswer {
    const { method } = call
    const [, id = '', more = ''] = /^\/messages\/(\w+)(\/.*)?$/.exec(rest) ?? []
    const index = this.#messages.findIndex((message) => message._id === id && message.channel === channel)
    const message = this.#messages[index]
    if (!message) return problem(404, 'NotFound')
    const [, emoji] = /^\/reactions\/([^/]+)$/.exec(more) ?? []
    if (method === 'PUT' && emoji !== undefined) {
      this.reactions.push({ messageId: id, emoji: decodeURIComponent(emoji) })
      return { status: 204 }
    }
    if (method === 'GET') return { status: 200, body: message }
    if (message.author !== BOT._id) return problem(403, 'CannotEditMessage')
    if (method === 'DELETE') {
      this.#messages.splice(index, 1)
      this.#shown.remove(id)
      return { status: 204 }
    }
    const { content = '' } = bodyOf(call)
    if (content === '' || Buffer.byteLength(content) > 2000) return this.#refuse('an edit that is empty or too long')
    this.#shown.edit(id, content)
    const data = { content, edited: '2026-11-20T12:01:00.000Z' }
    this.#messages[index] = { ...message, ...data }
    this.sendEvent({ type: 'MessageUpdate', id, channel, data, clear: [] })
    return { status: 200, body: this.#messages[index] }
  }

  #list(channel: string, query: URLSearchParams): PlatformAnswer {
    if (this.#closed.has(channel)) return problem(403, 'MissingPermission', { permission: 'ReadMessageHistory' })
    const limit = Number(query.get('limit') ?? 50)
    const after = query.get('after') ?? '0'.repeat(26)
    if (!(limit >= 1 && limit <= 100) || after.length !== 26) return this.#refuse('a wrong list of messages')
    const found = this.#messages.filter((message) => message.channel === channel && message._id > after)
    const isOldest = query.get('sort') === 'Oldest'
    const messages = (isOldest ? found : found.toReversed()).slice(0, limit)
    if (query.get('include_users') !== 'true') return { status: 200, body: messages }
    return { status: 200, body: { messages, users: [ADA, BOT], members: [] } }
  }

  #create(call: PlatformCall, response: ServerResponse, channel: string): PlatformAnswer | undefined {
    const key = String(call.headers['idempotency-key'] ?? this.#id())
    if (key.length > 64) return this.#refuse('a key that is too long')
    if (this.#keys.has(key)) return problem(409, 'DuplicateNonce')
    const fault = this.#shown.takeFault()
    // Nothing is looked at before the limits.
    if (fault?.kind === 'rate_limit') return limited(fault.retryAfterSecs)
    if (fault?.kind === 'reset') return resetConnection(response)
    // The key is used up now, whatever comes of the message.
    this.#keys.add(key)
    const answer = this.#answer
    this.#answer = undefined
    if (answer) return answer
    if (fault && fault.kind !== 'lost_answer') return answerFault(fault, response, FAULT_ANSWERS)
    const body = bodyOf(call)
    const { content, attachments = [], replies = [] } = body
    const wrong = this.#wrongOf(body)
    if (wrong !== undefined) return this.#refuse(wrong)
    const message: Message = {
      _id: this.#id(),
      nonce: key,
      channel,
      author: BOT._id,
      content,
      replies: replies.flatMap(({ id }) => id ?? []),
    }
    this.#messages.push(message)
    this.#shown.show({
      id: message._id,
      chatId: channel,
      text: content ?? '',
      replyTo: replies[0]?.id,
      files: attachments.flatMap((id) => this.#files.get(id) ?? []),
      buttons: [],
    })
    // The bot is told of its own messages, too.
    this.#emit(message)
    return fault ? resetConnection(response) : { status: 200, body: message }
  }

  #wrongOf({ content = '', attachments = [], replies = [] }: Body): string | undefined {
    if (content === '' && attachments.length === 0) return 'an empty message'
    if (Buffer.byteLength(content) > 2000) return 'a message that is too long'
    if (/@everyone|@online|<[@%]/.test(content)) return 'a mention'
    if (attachments.length > 5) return 'too many files'
    if (attachments.some((id) => !this.#files.has(id))) return 'a file that was not uploaded'
    return replies.some((reply) => reply.mention !== false) ? 'a reply that notifies' : undefined
  }

  async #upload(call: PlatformCall): Promise<PlatformAnswer> {
    const file = (await call.form()).get('file')
    if (!(file instanceof File) || file.size === 0) return this.#refuse('an upload without a file')
    return { status: 200, body: { id: this.#keep(await fileOf(file)) } }
  }
  #download({ headers }: PlatformCall, id: string, name: string): PlatformAnswer {
    if (headers['x-bot-token'] !== undefined) this.violations.push('the token was sent for a file')
    const file = this.#files.get(id)
    if (!file || file.name !== name) return problem(404, 'NotFound')
    return { status: 200, body: file.bytes, headers: { 'content-type': file.mime } }
  }

  #refuse(what: string): PlatformAnswer {
    this.violations.push(what)
    return problem(400, 'FailedValidation', { error: what })
  }
}

/** The server reads JSON whatever type it is said to be of; its own client says none. */
function bodyOf({ bytes }: PlatformCall): Body {
  return JSON.parse(Buffer.from(bytes).toString()) as Body
}

function problem(status: number, type: string, more: object = {}): PlatformAnswer {
  return { status, body: { type, ...more, location: 'crates/delta/src/fake.rs:1:1' } }
}
/** Milliseconds, in the body and in a header. */
function limited(seconds: number | undefined): PlatformAnswer {
  const ms = seconds === undefined ? undefined : seconds * 1000
  return {
    status: 429,
    body: ms === undefined ? {} : { retry_after: ms },
    headers: ms === undefined ? {} : { 'x-ratelimit-reset-after': String(ms), 'x-ratelimit-remaining': '0' },
  }
}
/** How the server says what went wrong. */
const FAULT_ANSWERS = {
  rate_limit: limited,
  server_error: problem(500, 'InternalError'),
  permanent: problem(403, 'MissingPermission', { permission: 'SendMessage' }),
  auth: problem(401, 'InvalidSession'),
}
