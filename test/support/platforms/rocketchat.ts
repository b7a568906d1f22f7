import type { IncomingMessage, ServerResponse } from 'node:http'
import { allFaults, answerFault, fileOf } from './faults.ts'
import { resetConnection, Shown } from './http.ts'
import type { PlatformAnswer, PlatformCall } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformFile, PlatformInput } from './platform.ts'
import { Presence, startSocketServer } from './sockets.ts'
import type { Peer, PeerHandlers } from './sockets.ts'

const TOKEN = 'fakeRocketChatToken-RScctEHSmLGZGywfIhWyRpyofhKOiMoUIpimhvheU3f'
const BOT = { _id: 'botbotbotbotbotbo', username: 'svc', name: 'Svc' }
const ADA = { _id: 'adaadaadaadaadaad', username: 'ada', name: 'Ada' }
const DIRECT = { _id: `${ADA._id}${BOT._id}`, t: 'd', usernames: ['ada', 'svc'], usersCount: 2 }
const GROUP = { _id: 'GENERAL', t: 'c', name: 'general', fname: 'General', usersCount: 12 }
const THREAD = 'rootrootrootrootr'
const MAX_CHARACTERS = 5000
const EMOJI: Readonly<Record<string, string>> = { ':thumbsup:': '👍', ':eyes:': '👀' }
const START = 1_763_640_000_000

interface Room {
  readonly _id: string
  readonly t: string
  readonly name?: string
  readonly usersCount?: number
}
/** A message of the server, whose times are dates. */
interface Stored {
  readonly _id: string
  readonly rid: string
  readonly msg: string
  readonly ts: Date
  readonly u: { readonly _id: string; readonly username: string; readonly name: string }
  readonly _updatedAt: Date
  readonly editedAt?: Date
  readonly [field: string]: unknown
}
interface Body {
  message?: { _id?: string; rid?: string; msg?: string; tmid?: string }
  roomId?: string
  msgId?: string
  text?: string
  messageId?: string
  emoji?: string
  tmid?: string
}
type Sub = Readonly<{ peer: Peer; id: string }>

export interface FakeRocketChat extends FakePlatform {
  /** What a room has besides. */
  write(message: { readonly rid: string; readonly msg: string; readonly [field: string]: unknown }): Stored
  addRoom(room: Room): void
  /** Tells again of a message, as when somebody reacts to it. */
  touch(id: string): void
  sendFrame(frame: unknown): void
  /** The WebSocket refuses the token. */
  refuseLogins(): void
  /** The next list of messages is refused: too many calls. */
  limitNextSync(): void
  /** Rooms that the bot may not read. */
  readonly closed: Set<string>
  readonly frames: readonly unknown[]
  readonly requests: readonly string[]
}

/** Rocket.Chat 7. Source: https://developer.rocket.chat/apidocs, and the code of github.com/RocketChat/Rocket.Chat. */
export async function startFakeRocketChat(): Promise<FakeRocketChat> {
  const fake = new RocketChat()
  const server = await startSocketServer(
    (call, response) => fake.handle(call, response),
    (peer, request) => fake.accept(peer, request),
  )
  fake.origin = server.origin
  return Object.assign(fake, { [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() })
}

class RocketChat implements Omit<FakeRocketChat, typeof Symbol.asyncDispose> {
  readonly channel = 'rocketchat'
  readonly secrets = [TOKEN]
  readonly chats = { direct: DIRECT._id, group: GROUP._id, thread: THREAD }
  readonly person = ADA._id
  readonly redelivers = true
  readonly faults = allFaults
  readonly removes = true
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  readonly closed = new Set<string>()
  readonly frames: unknown[] = []
  readonly requests: string[] = []
  origin = ''
  readonly #shown = new Shown()
  readonly #rooms = new Map<string, Room>([DIRECT, GROUP].map((room) => [room._id, room]))
  readonly #messages = new Map<string, Stored>()
  readonly #files = new Map<string, PlatformFile>()
  readonly #listener = new Presence<Sub>()
  #next = 1
  #isLimiting = false
  #isRefusing = false

  constructor() {
    this.#store({ _id: THREAD, rid: GROUP._id, msg: 'the root' })
  }

  get config() {
    return { token: TOKEN, user_id: BOT._id, base_url: this.origin }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrongRocketChatToken' }
  }
  get sent() {
    return this.#shown.sent
  }
  waitForSent = (count: number) => this.#shown.waitForSent(count)
  fail = (fault: PlatformFault) => this.#shown.fail(fault)
  setWebhook = () => {}
  addRoom = (room: Room) => void this.#rooms.set(room._id, room)
  refuseLogins(): void {
    this.#isRefusing = true
  }
  limitNextSync(): void {
    this.#isLimiting = true
  }
  sendFrame(frame: unknown): void {
    this.#listener.value?.peer.send(frame)
  }
  async waitForListener(): Promise<void> {
    await this.#listener.wait()
  }
  async disconnect(): Promise<void> {
    const listener = await this.#listener.wait()
    this.#listener.set(undefined)
    listener.peer.cut()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const known = input.redeliveryOf ?? input.editOf
    const earlier = this.#messages.get(known ?? '')
    if (earlier) {
      const now = this.#now()
      const edited = { ...earlier, msg: input.text, editedAt: now, editedBy: ADA, _updatedAt: now }
      if (input.editOf !== undefined) this.#messages.set(earlier._id, edited)
      this.#emit(input.editOf === undefined ? earlier : edited)
      return earlier._id
    }
    const files = (input.files ?? []).map((file) => this.#describe(this.#keep(file), file))
    const message = this.write({
      rid: input.isGroup || input.threadId !== undefined ? GROUP._id : DIRECT._id,
      msg: input.mentionsBot ? `@${BOT.username} ${input.text}` : input.text,
      u: input.isOwn ? BOT : ADA,
      ...(input.mentionsBot && { mentions: [BOT] }),
      ...(input.threadId !== undefined && { tmid: input.threadId }),
      ...(files.length > 0 && { files, file: files[0], attachments: [{ title: files[0]?.name, type: 'file' }] }),
    })
    return message._id
  }

  write(given: { readonly rid: string; readonly msg: string; readonly [field: string]: unknown }): Stored {
    const message = this.#store(given)
    this.#emit(message)
    return message
  }
  touch(id: string): void {
    const message = this.#messages.get(id)
    if (message) this.#emit({ ...message, reactions: { ':eyes:': { usernames: ['ada'] } } })
  }

  #store(given: { readonly rid: string; readonly msg: string; readonly [field: string]: unknown }): Stored {
    const now = this.#now()
    const message: Stored = { _id: this.#id(), ts: now, u: ADA, _updatedAt: now, urls: [], ...given }
    this.#messages.set(message._id, message)
    return message
  }
  #now(): Date {
    return new Date(START + this.#next++)
  }
  #id(): string {
    return `id${String(this.#next++).padStart(15, '0')}`
  }
  #keep(file: PlatformFile): string {
    const id = this.#id()
    this.#files.set(id, file)
    return id
  }
  #describe(id: string, { name, mime, bytes }: PlatformFile) {
    return { _id: id, name, type: mime, size: bytes.length, format: name.split('.').at(-1) }
  }

  // The WebSocket

  accept(peer: Peer, request: IncomingMessage): PeerHandlers | number {
    if (request.url !== '/websocket') return 4000
    peer.send({ server_id: '0' })
    let state: 'new' | 'connected' | 'signed in' = 'new'
    return {
      frame: (raw) => {
        this.frames.push(raw)
        const frame = (raw ?? {}) as { msg?: string; id?: string; method?: string; name?: string; params?: unknown[] }
        const [first] = frame.params ?? []
        if (frame.msg === 'pong') return
        if (frame.msg === 'connect' && state === 'new') {
          state = 'connected'
          peer.send({ msg: 'connected', session: 'session' })
          return
        }
        if (frame.method === 'login' && state === 'connected') {
          if (this.#isRefusing || (first as { resume?: string }).resume !== TOKEN) {
            const error = { isClientSafe: true, error: 403, reason: "You've been logged out by the server." }
            peer.send({ msg: 'result', id: frame.id, error })
            return
          }
          state = 'signed in'
          peer.send({ msg: 'added', collection: 'users', id: BOT._id, fields: { username: BOT.username } })
          peer.send({ msg: 'result', id: frame.id, result: { id: BOT._id, token: TOKEN, type: 'resume' } })
          return
        }
        if (state !== 'signed in') this.violations.push(`the frame ${frame.msg} before the login`)
        else this.#answerFrame(peer, frame)
      },
      closed: () => {
        if (this.#listener.value?.peer === peer) this.#listener.set(undefined)
      },
    }
  }

  #answerFrame(
    peer: Peer,
    {
      msg,
      id = '',
      method,
      name,
      params = [],
    }: { msg?: string; id?: string; method?: string; name?: string; params?: unknown[] },
  ): void {
    if (msg === 'sub' && name === 'stream-room-messages' && params[0] === '__my_messages__') {
      peer.send({ msg: 'ready', subs: [id] })
      this.#listener.set({ peer, id })
      return
    }
    if (method === 'stream-notify-room') {
      const [event, username, activities] = params as [string, string, string[]]
      const [room = '', kind] = event.split('/')
      if (kind !== 'user-activity' || username !== BOT.username || activities[0] !== 'user-typing')
        this.violations.push(`the notice ${event}`)
      this.typing.push(room)
      peer.send({ msg: 'result', id })
      peer.send({ msg: 'updated', methods: [id] })
      return
    }
    this.violations.push(`the frame ${msg} ${method ?? name}`)
  }

  #emit(message: Stored): void {
    const listener = this.#listener.value
    const room = this.#rooms.get(message.rid)
    const place = { roomParticipant: true, roomType: room?.t, roomName: room?.name, ...(message['place'] as object) }
    const fields = { eventName: '__my_messages__', args: [toEjson(message), place] }
    listener?.peer.send({ msg: 'changed', collection: 'stream-room-messages', id: 'id', fields })
  }

  // The API

  async handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { method, url, headers } = call
    if (headers['x-auth-token'] !== TOKEN || headers['x-user-id'] !== BOT._id)
      return { status: 401, body: { status: 'error', message: 'You must be logged in to do this.' } }
    const [, fileId] = /^\/file-upload\/(\w+)\/./.exec(url.pathname) ?? []
    const file = this.#files.get(fileId ?? '')
    if (file) return { status: 200, body: new Uint8Array(file.bytes), headers: { 'content-type': file.mime } }
    const route = `${method} ${url.pathname.replace(/^\/api\/v1\//, '')}`
    this.requests.push(route)
    const body = (call.json ?? {}) as Body
    if (route === 'POST chat.sendMessage') return this.#create(body, response)
    if (method === 'GET') return this.#read(route.slice('GET '.length), url.searchParams)
    if (route === 'POST chat.update') return this.#update(body)
    if (route === 'POST chat.delete') return this.#delete(body)
    if (route === 'POST chat.react') return this.#react(body)
    const [, action, room = '', stored = ''] = /^POST rooms\.(media|mediaConfirm)\/([^/]+)\/?(\w*)$/.exec(route) ?? []
    if (action === 'media' && this.#rooms.has(room)) return this.#upload(call)
    if (action === 'mediaConfirm') return this.#confirm(decodeURIComponent(room), stored, body)
    return failure(`the request ${route}`)
  }

  #read(route: string, query: URLSearchParams): PlatformAnswer {
    if (route === 'me') return ok(BOT)
    if (route === 'rooms.get') return this.#listRooms(query.get('updatedSince'))
    if (route === 'rooms.info') {
      const room = this.#rooms.get(query.get('roomId') ?? '')
      return room ? ok({ room }) : failure('error-room-not-found')
    }
    if (route === 'chat.getMessage') {
      const message = this.#messages.get(query.get('msgId') ?? '')
      return message ? ok({ message }) : failure(undefined)
    }
    if (route === 'chat.syncMessages') return this.#sync(query)
    return failure(`the request ${route}`)
  }

  #listRooms(since: string | null): PlatformAnswer {
    if (since !== null && Number.isNaN(Date.parse(since))) return failure('error-updatedSince-param-invalid')
    const update = [...this.#rooms.values()].flatMap((room) => {
      const times = [...this.#messages.values()].filter(({ rid }) => rid === room._id).map((each) => each._updatedAt)
      const at = new Date(Math.max(START - 1, ...times.map(Number)))
      // An answer in a thread does not change when the last message was, but it changes the room.
      return since === null || Number(at) > Date.parse(since) ? [{ ...room, _updatedAt: at, lm: new Date(START) }] : []
    })
    return ok({ update, remove: [] })
  }

  #sync(query: URLSearchParams): PlatformAnswer {
    const since = Date.parse(query.get('lastUpdate') ?? '')
    if (Number.isNaN(since)) return failure('error-lastUpdate-param-invalid')
    if (this.#isLimiting) {
      this.#isLimiting = false
      return limited(60)
    }
    if (this.closed.has(query.get('roomId') ?? '')) return failure('error-not-allowed')
    const updated = [...this.#messages.values()].filter(
      ({ rid, _updatedAt: at }) => rid === query.get('roomId') && Number(at) > since,
    )
    return ok({ result: { updated: updated.toReversed(), deleted: [] } })
  }

  #create({ message = {} }: Body, response: ServerResponse): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer')
      return answerFault(fault, response, {
        rate_limit: (seconds) => limited(seconds),
        server_error: { status: 500, body: { success: false, error: 'Internal server error' } },
        permanent: failure('error-not-allowed'),
        auth: { status: 401, body: { status: 'error', message: 'You must be logged in to do this.' } },
      })
    const { _id: id = this.#id(), rid = '', msg = '', tmid } = message
    // The server stores nothing, and then cannot read what it has not stored.
    if (this.#messages.has(id)) return failure("Cannot read properties of undefined (reading 'starred')")
    if (!this.#rooms.has(rid)) return this.#violation('a room that is none')
    if (msg === '') return this.#violation('an empty message')
    if (msg.length > MAX_CHARACTERS) return this.#violation('error-message-size-exceeded')
    if (tmid !== undefined && !this.#messages.has(tmid)) return this.#violation('a thread that is none')
    const stored = this.#store({ _id: id, rid, msg, u: BOT, ...(tmid !== undefined && { tmid }) })
    this.#shown.show({ id, chatId: rid, threadId: tmid, text: msg, files: [], buttons: [], key: id })
    this.#emit(stored)
    return fault ? resetConnection(response) : ok({ message: stored })
  }

  #update({ roomId, msgId = '', text = '' }: Body): PlatformAnswer {
    const message = this.#messages.get(msgId)
    if (!message) return failure(`No message found with the id of "${msgId}".`)
    if (message.rid !== roomId) return this.#violation('the room of another message')
    const now = this.#now()
    const edited = { ...message, msg: text, editedAt: now, _updatedAt: now }
    this.#messages.set(msgId, edited)
    this.#shown.edit(msgId, text)
    this.#emit(edited)
    return ok({ message: edited })
  }
  #delete({ roomId, msgId = '' }: Body): PlatformAnswer {
    const message = this.#messages.get(msgId)
    if (!message) return failure(`No message found with the id of "${msgId}".`)
    if (message.rid !== roomId) return this.#violation('the room of another message')
    this.#messages.delete(msgId)
    this.#shown.remove(msgId)
    return ok({ _id: msgId, message })
  }
  #react({ messageId = '', emoji = '' }: Body): PlatformAnswer {
    const known = EMOJI[emoji]
    if (known === undefined || !this.#messages.has(messageId)) return this.#violation(`the reaction ${emoji}`)
    this.reactions.push({ messageId, emoji: known })
    return ok({})
  }

  async #upload(call: PlatformCall): Promise<PlatformAnswer> {
    const file = (await call.form()).get('file')
    if (!(file instanceof File)) return this.#violation('an upload without a file')
    const id = this.#keep(await fileOf(file))
    return ok({ file: { _id: id, url: `/file-upload/${id}/${encodeURIComponent(file.name)}` } })
  }
  #confirm(rid: string, id: string, { tmid }: Body): PlatformAnswer {
    const file = this.#files.get(id)
    if (!file || !this.#rooms.has(rid)) return this.#violation('a file that was not uploaded')
    const files = [this.#describe(id, file)]
    const stored = this.#store({ rid, msg: '', u: BOT, files, ...(tmid !== undefined && { tmid }) })
    this.#shown.show({ id: stored._id, chatId: rid, threadId: tmid, text: '', files: [file], buttons: [] })
    this.#emit(stored)
    return ok({ message: stored })
  }

  #violation(what: string): PlatformAnswer {
    this.violations.push(what)
    return failure(what)
  }
}

const ok = (body: object): PlatformAnswer => ({ status: 200, body: { ...body, success: true } })
const failure = (error: string | undefined): PlatformAnswer => ({
  status: 400,
  body: { success: false, ...(error !== undefined && { error }) },
})
function limited(seconds: number | undefined): PlatformAnswer {
  const wait = seconds === undefined ? '' : ` You must wait ${seconds} seconds before trying this endpoint again.`
  return {
    status: 429,
    body: { success: false, error: `Error, too many requests. Please slow down.${wait} [error-too-many-requests]` },
    ...(seconds !== undefined && { headers: { 'x-ratelimit-reset': String(Date.now() + seconds * 1000) } }),
  }
}

/** Dates as the WebSocket has them. */
function toEjson(value: unknown): unknown {
  if (value instanceof Date) return { $date: Number(value) }
  if (Array.isArray(value)) return value.map(toEjson)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, toEjson(inner)]))
}
