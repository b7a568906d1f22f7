import type { IncomingMessage, ServerResponse } from 'node:http'
import { allFaults, answerFault } from './faults.ts'
import { resetConnection, Shown } from './http.ts'
import type { PlatformAnswer, PlatformCall, PlatformServer } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformInput } from './platform.ts'
import { Presence, startSocketServer } from './sockets.ts'
import type { AcceptPeer, Peer } from './sockets.ts'

const CLIENT_ID = 'hof5gwx0su6owfnys0nyan9c87zr6t'
const CLIENT_SECRET = '41vpdji4e9gif29md0ouet6fktd2'
const BOT = { user_id: '141981764', login: 'helper', name: 'Helper' }
const ADA = { user_id: '4145994', login: 'ada', name: 'Ada' }
const CHANNEL = { id: '1971641', login: 'streamer', display_name: 'Streamer' }

interface Session {
  readonly id: string
  readonly chats: Set<string>
  peer: Peer
}
/** A message as an event shows it; a test may change any field. */
export type FakeChatMessage = Record<string, unknown>

const refuse = (status: number, message: string, headers = {}): PlatformAnswer => ({
  status,
  body: { error: STATUS[status] ?? '', status, message },
  headers,
})
const STATUS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  422: 'Unprocessable Entity',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
}
const INVALID_TOKEN = refuse(401, 'Invalid OAuth token')

/** The API of Twitch and its EventSub: https://dev.twitch.tv/docs/eventsub/handling-websocket-events/ */
export class FakeTwitch implements FakePlatform {
  readonly channel = 'twitch'
  readonly secrets = ['access0', 'refresh0', 'access1', CLIENT_SECRET]
  readonly chats = { direct: CHANNEL.id, group: CHANNEL.id }
  readonly hasOnlyGroups = true
  readonly person = ADA.user_id
  readonly faults = allFaults
  readonly answersInJson = true
  readonly typing = []
  readonly reactions = []
  readonly violations: string[] = []
  /** What the token permits. */
  scopes = ['user:read:chat', 'user:write:chat']
  /** Channels that the bot may not read. */
  readonly banned = new Set<string>()
  /** What happened to the tokens. */
  refreshes = 0
  validations = 0
  readonly #shown = new Shown()
  readonly #listener = new Presence<Session>()
  readonly #events = new Map<string, FakeChatMessage>()
  readonly #sessions = new Map<string, Session>()
  #server: PlatformServer | undefined
  #refusesRefresh = false
  #next = 1
  #access = 'access0'
  #refresh = 'refresh0'
  #drop: { readonly code: string; readonly message: string } | undefined

  static async start(): Promise<FakeTwitch> {
    const fake = new FakeTwitch()
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
    return {
      base_url: `${this.origin}/helix`,
      auth_url: `${this.origin}/oauth2`,
      socket_url: `${this.origin.replace('http', 'ws')}/ws`,
      token: 'oauth:access0',
      refresh_token: 'refresh0',
      client_id: CLIENT_ID,
      client_secret: CLIENT_SECRET,
      channels: ['Streamer'],
    }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrong', refresh_token: 'wrong' }
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
  /** The next message is taken with success, and not shown. */
  drop(code: string, message = ''): void {
    this.#drop = { code, message }
  }
  setWebhook(): void {}
  async waitForListener(): Promise<void> {
    await this.#listener.wait()
  }
  async disconnect(): Promise<void> {
    const session = await this.#listener.wait()
    this.#listener.remove(session)
    session.peer.cut()
  }
  /** The token ends, as after four hours; `all` as when the user took the permission back. */
  expire(all = false): void {
    this.#access = 'none'
    if (all) this.#refresh = 'none'
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const known = this.#events.get(input.redeliveryOf ?? '')
    if (known) {
      this.send('notification', { subscription: {}, event: known })
      return input.redeliveryOf ?? ''
    }
    const author = input.isOwn ? BOT : ADA
    const isMention = input.mentionsBot === true || input.replyTo !== undefined
    const fragments = [
      ...(isMention ? [{ type: 'mention', text: `@${BOT.name}`, mention: { user_id: BOT.user_id } }] : []),
      { type: 'text', text: isMention ? ` ${input.text}` : input.text },
    ]
    return this.say({
      ...(author === BOT && {
        chatter_user_id: BOT.user_id,
        chatter_user_login: BOT.login,
        chatter_user_name: BOT.name,
      }),
      message: { text: fragments.map(({ text }) => text).join(''), fragments },
      ...(input.replyTo !== undefined && {
        reply: { parent_message_id: input.replyTo, parent_user_id: BOT.user_id, parent_user_login: BOT.login },
      }),
    })
  }

  /** Somebody writes; what is absent is as usual. */
  say(message: FakeChatMessage): string {
    const id = `cc106a89-1814-919d-454c-${this.#next++}`
    const event = {
      broadcaster_user_id: CHANNEL.id,
      broadcaster_user_login: CHANNEL.login,
      broadcaster_user_name: CHANNEL.display_name,
      source_broadcaster_user_id: null,
      chatter_user_id: ADA.user_id,
      chatter_user_login: ADA.login,
      chatter_user_name: ADA.name,
      message_id: id,
      badges: [{ set_id: 'moderator', id: '1', info: '' }],
      reply: null,
      message_type: 'text',
      ...message,
    }
    this.#events.set(id, event)
    this.send('notification', { subscription: { type: 'channel.chat.message', status: 'enabled' }, event })
    return id
  }
  /** Sends any frame. */
  send(type: string, payload: unknown, peer = this.#listener.value?.peer): void {
    const metadata = {
      message_id: `m${this.#next++}`,
      message_type: type,
      message_timestamp: '2026-11-20T12:00:00.464757833Z',
      ...(type === 'notification' && { subscription_type: 'channel.chat.message', subscription_version: '1' }),
    }
    peer?.send({ metadata, payload })
  }
  /** Says that the connection has to be replaced by one at this address. */
  askToReconnect(url = `${this.origin.replace('http', 'ws')}/ws?id=${this.#listener.value?.id}`): void {
    this.send('session_reconnect', { session: { id: this.#listener.value?.id, reconnect_url: url } })
  }

  #accept(peer: Peer, request: IncomingMessage): ReturnType<AcceptPeer> {
    const url = new URL(request.url ?? '', this.origin)
    if (url.pathname !== '/ws') return this.#refuseSocket(1008, 'the path of the socket')
    const id = url.searchParams.get('id')
    const old = this.#listener.value
    if (id !== null && old?.id !== id) return this.#refuseSocket(4007, 'a session that is none')
    const session: Session = { id: id ?? `session${this.#next++}`, chats: old && id ? old.chats : new Set(), peer }
    this.#sessions.set(session.id, session)
    if (id !== null) this.#listener.set(session)
    this.send(
      'session_welcome',
      { session: { id: session.id, status: 'connected', keepalive_timeout_seconds: 30, reconnect_url: null } },
      peer,
    )
    return {
      frame: () => {
        this.violations.push('a frame of a client')
        peer.close(4001)
      },
      closed: () => this.#listener.remove(session),
    }
  }
  #refuseSocket(code: number, what: string): number {
    this.violations.push(what)
    return code
  }

  #handle(call: PlatformCall, response: ServerResponse): PlatformAnswer | undefined {
    const { method, url, headers } = call
    const route = `${method} ${url.pathname}`
    if (route === 'GET /oauth2/validate') return this.#validate(headers.authorization)
    if (route === 'POST /oauth2/token') return this.#renew(new URLSearchParams(Buffer.from(call.bytes).toString()))
    if (headers['client-id'] !== CLIENT_ID) return this.#violation(401, 'Client ID is missing')
    if (headers.authorization !== `Bearer ${this.#access}`) return INVALID_TOKEN
    if (route === 'GET /helix/users') return this.#users(url.searchParams.getAll('login'))
    if (route === 'POST /helix/eventsub/subscriptions') return this.#subscribe(call.json)
    if (route === 'POST /helix/chat/messages') return this.#create(call.json, response)
    return this.#violation(404, route)
  }

  #validate(authorization: string | undefined): PlatformAnswer {
    if (!authorization?.startsWith('OAuth ')) return this.#violation(401, 'missing authorization token')
    if (authorization !== `OAuth ${this.#access}`)
      return { status: 401, body: { status: 401, message: 'invalid access token' } }
    this.validations++
    const { login, user_id: userId } = BOT
    return {
      status: 200,
      body: { client_id: CLIENT_ID, login, user_id: userId, scopes: this.scopes, expires_in: 14_400 },
    }
  }
  #renew(form: URLSearchParams): PlatformAnswer {
    if (form.get('grant_type') !== 'refresh_token' || form.get('client_id') !== CLIENT_ID)
      return this.#violation(400, 'missing grant type')
    if (form.get('client_secret') !== CLIENT_SECRET) return this.#violation(403, 'invalid client secret')
    const isRefused = this.#refusesRefresh
    this.#refusesRefresh = false
    if (isRefused || form.get('refresh_token') !== this.#refresh) return refuse(400, 'Invalid refresh token')
    this.refreshes++
    this.#access = `access${this.#next++}`
    this.#refresh = `refresh${this.#next++}`
    const body = { access_token: this.#access, refresh_token: this.#refresh, scope: this.scopes, token_type: 'bearer' }
    return { status: 200, body }
  }
  #users(logins: readonly string[]): PlatformAnswer {
    const known = [CHANNEL, { id: '99', login: 'other', display_name: 'Other' }]
    if (logins.length === 0 || logins.length > 100) return this.#violation(400, 'the number of logins')
    return { status: 200, body: { data: known.filter(({ login }) => logins.includes(login)) } }
  }

  #subscribe(body: unknown): PlatformAnswer {
    const { type, version, condition, transport } = body as Record<string, Record<string, string>>
    const session = this.#sessions.get(transport?.['session_id'] ?? '')
    if (String(type) !== 'channel.chat.message' || String(version) !== '1')
      return this.#violation(400, 'invalid subscription type and version')
    if (transport?.['method'] !== 'websocket' || !session)
      return this.#violation(400, 'websocket transport session does not exist')
    if (condition?.['user_id'] !== BOT.user_id) return this.#violation(403, 'another user')
    const chatId = condition['broadcaster_user_id'] ?? ''
    if (this.banned.has(chatId)) return refuse(403, 'subscription missing proper authorization')
    session.chats.add(chatId)
    this.#listener.set(session)
    return { status: 202, body: { data: [{ id: `s${this.#next++}`, status: 'enabled', type, version }], total: 1 } }
  }

  #create(body: unknown, response: ServerResponse): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer') return this.#answerFault(fault, response)
    const fields = body as Record<string, string>
    const { broadcaster_id: chatId = '', sender_id: sender, message = '', reply_parent_message_id: replyTo } = fields
    if (sender !== BOT.user_id) return this.#violation(401, 'the sender is not the user of the token')
    if (chatId !== CHANNEL.id) return this.#violation(400, 'a channel that is none')
    if (message.trim() === '' || /[\r\n]/.test(message)) return this.#violation(400, 'a message that is none')
    if ([...message].length > 500) return this.#violation(422, 'The message is too large')
    const dropped = this.#drop
    this.#drop = undefined
    if (dropped) return { status: 200, body: { data: [{ message_id: '', is_sent: false, drop_reason: dropped }] } }
    const id = `ab6ff8f2-${this.#next++}`
    this.#shown.show({ id, chatId, text: message, replyTo, files: [], buttons: [] })
    return fault ? resetConnection(response) : { status: 200, body: { data: [{ message_id: id, is_sent: true }] } }
  }
  #answerFault(fault: PlatformFault, response: ServerResponse): PlatformAnswer | undefined {
    if (fault.kind === 'auth') this.#refusesRefresh = true
    return answerFault(fault, response, {
      rate_limit: (seconds) =>
        refuse(
          429,
          'Too Many Requests',
          seconds === undefined ? {} : { 'ratelimit-reset': String(Math.floor(Date.now() / 1000 + seconds)) },
        ),
      server_error: refuse(500, 'Internal Server Error'),
      permanent: refuse(403, 'The sender is not permitted to send chat messages to the broadcaster’s chat room'),
      auth: INVALID_TOKEN,
    })
  }
  #violation(status: number, message: string): PlatformAnswer {
    this.violations.push(message)
    return refuse(status, message)
  }
}
