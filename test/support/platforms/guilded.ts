import type { IncomingMessage, ServerResponse } from 'node:http'
import { allFaults, answerFault } from './faults.ts'
import { resetConnection, Shown } from './http.ts'
import type { PlatformAnswer, PlatformCall } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformInput } from './platform.ts'
import { Presence, startSocketServer } from './sockets.ts'
import type { Peer, PeerHandlers } from './sockets.ts'

const TOKEN = 'gapi_fake-guilded-token=='
const BOT = { id: 'Ann6Bot1', name: 'Helper', type: 'bot', botId: 'b0b0', createdAt: '2025-01-01T00:00:00.000Z' }
const ADA = { id: 'Ann6Ada1', name: 'Ada', type: 'user' }
const DIRECT = '00000000-0000-0000-0000-00000000d1ec'
const GROUP = '00000000-0000-0000-0000-000000006100'
const SERVER = 'wlVr3Ggl'
const HEARTBEAT_MS = 22_500

interface Message {
  readonly id: string
  readonly channelId: string
  readonly createdBy: string
  readonly content: string
  readonly [field: string]: unknown
}
interface Event {
  readonly op: 0
  readonly s: string
  readonly t: string
  readonly d: unknown
}

export interface FakeGuilded extends FakePlatform {
  /** Cursors that connections came with. */
  readonly cursors: readonly (string | undefined)[]
  /** Requests, by method and path. */
  readonly calls: readonly string[]
  sendFrame(frame: unknown): void
  /** An event of any type. */
  emit(type: string, data: unknown): void
  /** The events of before are not kept any more. */
  forgetEvents(): void
}

/** A server that speaks the protocol of Guilded. Source: https://github.com/shayypy/guilded.py */
export async function startFakeGuilded(): Promise<FakeGuilded> {
  const fake = new Guilded()
  const server = await startSocketServer(
    (call, response) => fake.handle(call, response),
    (peer, request) => fake.accept(peer, request),
  )
  fake.origin = server.origin
  return Object.assign(fake, { [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() })
}

class Guilded implements Omit<FakeGuilded, typeof Symbol.asyncDispose> {
  readonly channel = 'guilded'
  readonly secrets = [TOKEN]
  readonly chats = { direct: DIRECT, group: GROUP }
  readonly person = ADA.id
  readonly redelivers = true
  readonly faults = allFaults
  readonly removes = true
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  readonly cursors: (string | undefined)[] = []
  readonly calls: string[] = []
  origin = ''
  readonly #shown = new Shown()
  readonly #messages = new Map<string, Message>()
  readonly #listener = new Presence<Peer>()
  #events: Event[] = []
  #next = 1
  /** Cursors of before are not valid any more. */
  #oldest = 0

  get config() {
    return { token: TOKEN, base_url: `${this.origin}/api/v1` }
  }
  get wrongConfig() {
    return { ...this.config, token: 'gapi_wrong' }
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
  sendFrame = (frame: unknown) => this.#listener.value?.send(frame)
  forgetEvents(): void {
    this.#events = []
    this.#oldest = this.#next
  }

  async deliver(input: PlatformInput): Promise<string> {
    const known = this.#messages.get(input.redeliveryOf ?? input.editOf ?? '')
    const isEdit = input.editOf !== undefined
    const content = input.mentionsBot ? `<@${BOT.id}> ${input.text}` : input.text
    const message: Message =
      known && !isEdit
        ? known
        : {
            id: known?.id ?? `msg-${this.#next++}`,
            type: 'default',
            channelId: input.isGroup ? GROUP : DIRECT,
            ...(input.isGroup && { serverId: SERVER, groupId: 'g' }),
            content,
            createdAt: '2025-11-20T12:00:00.000Z',
            createdBy: input.isOwn ? BOT.id : ADA.id,
            ...(isEdit && { updatedAt: '2025-11-20T12:01:00.000Z' }),
            ...(input.mentionsBot && { mentions: { users: [{ id: BOT.id }] } }),
            ...(input.replyTo !== undefined && { replyMessageIds: [input.replyTo] }),
          }
    this.#messages.set(message.id, message)
    this.#tell(isEdit ? 'ChatMessageUpdated' : 'ChatMessageCreated', message)
    return message.id
  }

  #tell(type: string, message: Message): void {
    this.emit(type, { ...(message['serverId'] !== undefined && { serverId: SERVER }), message })
  }
  emit(type: string, data: unknown): void {
    const event: Event = { op: 0, s: `event-${this.#next++}`, t: type, d: data }
    this.#events.push(event)
    this.sendFrame(event)
  }

  // The events

  accept(peer: Peer, { url, headers }: IncomingMessage): PeerHandlers | number {
    if (url !== '/websocket/v1') return 1002
    if (headers.authorization !== `Bearer ${TOKEN}`) return 4001
    const cursor = headers['guilded-last-message-id']
    const id = Array.isArray(cursor) ? cursor[0] : cursor
    this.cursors.push(id)
    const lastMessageId = this.#events.at(-1)?.s ?? `event-${this.#next++}`
    peer.send({ op: 1, d: { heartbeatIntervalMs: HEARTBEAT_MS, lastMessageId, user: BOT } })
    if (id !== undefined && !this.#replay(peer, id)) {
      peer.send({ op: 8, d: { message: 'Invalid cursor' } })
      peer.close(1000)
    } else this.#listener.set(peer)
    return {
      frame: (frame) => void this.violations.push(`the frame ${JSON.stringify(frame)}`),
      closed: () => this.#listener.remove(peer),
    }
  }

  /** Sends the events since then again. Returns whether they are known. */
  #replay(peer: Peer, cursor: string): boolean {
    const number = (id: string): number => Number(id.slice('event-'.length))
    if (number(cursor) < this.#oldest) return false
    for (const event of this.#events) if (number(event.s) > number(cursor)) peer.send(event)
    peer.send({ op: 2, d: {} })
    return true
  }

  // The API

  async handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { method, url, headers, json } = call
    const path = url.pathname.replace(/^\/api\/v1/, '')
    this.calls.push(`${method} ${path}`)
    if (headers.authorization !== `Bearer ${TOKEN}`) return problem(401, 'Unauthorized', 'Invalid auth token')
    if (path === '/users/@me') return { status: 200, body: { user: BOT } }
    if (path === `/users/${ADA.id}`) return { status: 200, body: { user: ADA } }
    if (path === `/servers/${SERVER}/members/${ADA.id}`)
      return { status: 200, body: { member: { user: ADA, nickname: 'Countess', roleIds: [7], joinedAt: '' } } }
    const [, channel = '', id] = /^\/channels\/([^/]+)\/messages(?:\/([^/]+))?$/.exec(path) ?? []
    if (channel !== DIRECT && channel !== GROUP) return problem(404, 'NotFound', 'Channel not found')
    const body = (json ?? {}) as { content?: string; replyMessageIds?: string[] }
    if (method === 'POST' && id === undefined) return this.#create(body, channel, response)
    if (id === undefined || !this.#shown.find(id)) return problem(404, 'NotFound', 'Message not found')
    if (method === 'DELETE') {
      this.#shown.remove(id)
      return { status: 204 }
    }
    const wrong = wrongOf(body.content)
    if (method !== 'PUT' || wrong !== undefined) return this.#refuse(wrong ?? `the request ${method}`)
    this.#shown.edit(id, body.content ?? '')
    return { status: 200, body: { message: { id, channelId: channel, content: body.content } } }
  }

  #create(
    { content = '', replyMessageIds: replies = [] }: { content?: string; replyMessageIds?: string[] },
    channel: string,
    response: ServerResponse,
  ): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer') return answerFault(fault, response, FAULT_ANSWERS)
    const wrong = wrongOf(content) ?? (replies.length > 5 ? 'too many replies' : undefined)
    if (wrong !== undefined) return this.#refuse(wrong)
    const id = `msg-${this.#next++}`
    this.#shown.show({ id, chatId: channel, text: content, replyTo: replies[0], files: [], buttons: [] })
    const server = channel === GROUP ? { serverId: SERVER } : {}
    const common = { type: 'default', content, createdAt: '2025-11-20T12:00:00.000Z', createdBy: BOT.id }
    const message = { id, channelId: channel, ...server, ...common }
    // The bot is told of its own messages, too.
    this.#tell('ChatMessageCreated', message)
    return fault ? resetConnection(response) : { status: 201, body: { message } }
  }

  #refuse(what: string): PlatformAnswer {
    this.violations.push(what)
    return problem(400, 'BadRequest', what)
  }
}

function wrongOf(content = ''): string | undefined {
  if (content === '' || [...content].length > 4000) return 'a message that is empty or too long'
  return /@everyone|@here|<@/.test(content) ? 'a mention' : undefined
}

function problem(status: number, code: string, message: string): PlatformAnswer {
  return { status, body: { code, message } }
}
/** How the server says what went wrong. */
const FAULT_ANSWERS = {
  rate_limit: (seconds: number | undefined): PlatformAnswer => ({
    ...problem(429, 'TooManyRequests', 'You are being rate limited'),
    ...(seconds !== undefined && { headers: { 'retry-after': String(seconds) } }),
  }),
  server_error: problem(500, 'InternalServerError', 'There was an error'),
  permanent: problem(403, 'ForbiddenError', 'Your bot does not have permission'),
  auth: problem(401, 'Unauthorized', 'Invalid auth token'),
}
