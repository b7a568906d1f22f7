import type { ServerResponse } from 'node:http'
import { allFaults, answerFault, fileOf } from './faults.ts'
import { resetConnection, Shown } from './http.ts'
import type { PlatformAnswer, PlatformCall } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformFile, PlatformInput } from './platform.ts'
import { Presence, startSocketServer } from './sockets.ts'
import type { Peer, PeerHandlers } from './sockets.ts'

const TOKEN = 'MTEx.fake.discord-token'
const BOT = { id: '111', username: 'svc-bot', bot: true }
const ADA = { id: '222', username: 'ada', global_name: 'Ada' }
const DIRECT = '1000'
const GROUP = '2000'
const THREAD = '3000'
const GUILD = '9000'
const MESSAGE_CONTENT = 1 << 15
const HEARTBEAT_MS = 41_250

interface Event {
  readonly t: string
  readonly s: number
  readonly d: unknown
}
interface Session {
  readonly id: string
  readonly events: Event[]
}
interface Body {
  content?: unknown
  nonce?: unknown
  enforce_nonce?: unknown
  allowed_mentions?: { parse?: unknown }
  message_reference?: { message_id?: string; fail_if_not_exists?: boolean }
  components?: { type: number; components: { type: number; style: number; label: string; custom_id: string }[] }[]
  attachments?: { id: number; filename: string }[]
}

interface Delivered extends Record<string, unknown> {
  readonly id: string
  readonly channel_id: string
}

export interface FakeDiscord extends FakePlatform {
  /** Frames the adapter sent to the gateway, without tokens. */
  readonly frames: readonly { readonly op: number; readonly d: unknown }[]
  /** Ids of interactions that were acknowledged. */
  readonly acknowledged: readonly string[]
  /** Sends a frame of the gateway to the adapter. */
  sendFrame(frame: unknown): void
  closeWith(code: number): void
  /** Heartbeats are not acknowledged any more. */
  ignoreHeartbeats(): void
  /** Discord no longer knows the session. */
  endSession(): void
  /** The next message is refused, with a pause for all routes of the bot. */
  pauseAll(seconds: number): void
}

/** Discord's API version 10 and its gateway. Source: https://docs.discord.com/developers/events/gateway */
export async function startFakeDiscord(): Promise<FakeDiscord> {
  const fake = new Discord()
  const server = await startSocketServer(
    (call, response) => fake.handle(call, response),
    (peer, request) => fake.accept(peer, request.url ?? ''),
  )
  fake.origin = server.origin
  return Object.assign(fake, { [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() })
}

class Discord implements Omit<FakeDiscord, typeof Symbol.asyncDispose> {
  readonly channel = 'discord'
  readonly secrets = [TOKEN]
  readonly chats = { direct: DIRECT, group: GROUP, thread: THREAD }
  readonly person = ADA.id
  readonly redelivers = true
  readonly faults = allFaults
  readonly removes = true
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  readonly frames: { op: number; d: unknown }[] = []
  readonly acknowledged: string[] = []
  origin = ''
  readonly #shown = new Shown()
  readonly #delivered = new Map<string, Delivered>()
  readonly #files = new Map<string, PlatformFile>()
  readonly #listener = new Presence<Peer>()
  #session: Session | undefined
  #nextId = (BigInt(Date.now()) - 1_420_070_400_000n) << 22n
  #globalPauseSecs: number | undefined
  #isIgnoringHeartbeats = false

  get config() {
    return { token: TOKEN, base_url: `${this.origin}/api/v10` }
  }
  get wrongConfig() {
    return { ...this.config, token: 'MTEx.wrong.discord-token' }
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
  closeWith(code: number): void {
    const peer = this.#listener.value
    this.#listener.set(undefined)
    peer?.close(code)
  }
  ignoreHeartbeats(): void {
    this.#isIgnoringHeartbeats = true
  }
  endSession(): void {
    this.#session = undefined
  }
  pauseAll(seconds: number): void {
    this.#globalPauseSecs = seconds
  }

  async deliver(input: PlatformInput): Promise<string> {
    if (input.redeliveryOf !== undefined) {
      this.#dispatch('MESSAGE_CREATE', this.#delivered.get(input.redeliveryOf))
      return input.redeliveryOf
    }
    if (input.button !== undefined) return this.#press(input)
    const message = this.#messageOf(input)
    this.#delivered.set(message.id, message)
    this.#dispatch(input.editOf === undefined ? 'MESSAGE_CREATE' : 'MESSAGE_UPDATE', message)
    return message.id
  }

  #messageOf(input: PlatformInput) {
    const isGroup = input.isGroup === true || input.threadId !== undefined
    const id = input.editOf ?? this.#newId()
    return {
      id,
      type: input.replyTo === undefined ? 0 : 19,
      channel_id: input.threadId ?? (isGroup ? GROUP : DIRECT),
      ...(isGroup && { guild_id: GUILD, member: { nick: null, roles: ['4000'], joined_at: '2026-01-01T00:00:00Z' } }),
      author: input.isOwn ? BOT : ADA,
      content: input.mentionsBot ? `<@${BOT.id}> ${input.text}` : input.text,
      timestamp: '2026-11-20T12:00:00.000000+00:00',
      edited_timestamp: input.editOf === undefined ? null : '2026-11-20T12:01:00.000000+00:00',
      tts: false,
      mention_everyone: false,
      mentions: input.mentionsBot ? [BOT] : [],
      mention_roles: [],
      embeds: [],
      pinned: false,
      attachments: (input.files ?? []).map((file, index) => this.#keep(file, `${id}${index}`)),
      ...(input.replyTo !== undefined && {
        message_reference: { type: 0, message_id: input.replyTo, channel_id: GROUP },
        referenced_message: { author: this.#shown.find(input.replyTo) ? BOT : ADA },
      }),
    }
  }

  #keep(file: PlatformFile, id: string) {
    this.#files.set(id, file)
    return {
      id,
      filename: file.name,
      content_type: file.mime,
      size: file.bytes.byteLength,
      url: `${this.origin}/attachments/${id}/${encodeURIComponent(file.name)}?ex=1&is=1&hm=1`,
      proxy_url: '',
    }
  }

  #press(input: PlatformInput): string {
    const id = this.#newId()
    const isGroup = input.isGroup === true
    this.#dispatch('INTERACTION_CREATE', {
      id,
      application_id: BOT.id,
      type: 3,
      token: `press-${id}`,
      version: 1,
      channel_id: isGroup ? GROUP : DIRECT,
      ...(isGroup ? { guild_id: GUILD, member: { user: ADA, nick: null } } : { user: ADA }),
      data: { component_type: 2, custom_id: input.button },
      message: { id: this.sent.at(-1)?.id ?? '0' },
    })
    return id
  }

  #newId(): string {
    return String(this.#nextId++)
  }

  // The gateway

  accept(peer: Peer, url: string): PeerHandlers | number {
    if (!url.includes('v=10') || !url.includes('encoding=json')) return this.#violation('a wrong address', 4012)
    peer.send({ op: 10, d: { heartbeat_interval: HEARTBEAT_MS } })
    let isIdentified = false
    let sends = 0
    return {
      frame: (raw) => {
        const frame = raw as { op?: number; d?: unknown } | undefined
        if (typeof frame?.op !== 'number') return peer.close(this.#violation('a frame that is not JSON', 4002))
        if (++sends > 120) return peer.close(this.#violation('more than 120 frames', 4008))
        if (frame.op === 1) {
          this.frames.push({ op: 1, d: frame.d })
          if (!this.#isIgnoringHeartbeats) peer.send({ op: 11 })
        } else if (frame.op !== 2 && frame.op !== 6) peer.close(this.#violation(`the opcode ${frame.op}`, 4001))
        else if (isIdentified) peer.close(this.#violation('a second identify', 4005))
        else isIdentified = this.#begin(peer, frame.op, frame.d as Record<string, unknown>)
      },
      closed: (code) => {
        this.#listener.remove(peer)
        // These codes end the session.
        if (code === 1000 || code === 1001) this.#session = undefined
      },
    }
  }

  #begin(peer: Peer, op: number, { token, ...d }: Record<string, unknown>): boolean {
    this.frames.push({ op, d })
    if (token !== TOKEN) {
      peer.close(4004)
      return false
    }
    if (op === 2) {
      this.#identify(peer, d)
      return true
    }
    const session = this.#session
    if (!session || d['session_id'] !== session.id) {
      peer.send({ op: 9, d: false })
      return false
    }
    for (const event of session.events) if (event.s > Number(d['seq'])) peer.send({ op: 0, ...event })
    this.#listener.set(peer)
    this.#dispatch('RESUMED', {})
    return true
  }

  #identify(peer: Peer, { intents, properties }: Record<string, unknown>): void {
    if (typeof intents !== 'number') return peer.close(this.#violation('no intents', 4013))
    if ((intents & MESSAGE_CONTENT) === 0) this.#violation('no intent for the content of messages', 0)
    if (typeof properties !== 'object') return peer.close(this.#violation('no properties', 4002))
    this.#session = { id: `session-${this.#newId()}`, events: [] }
    this.#listener.set(peer)
    this.#dispatch('READY', {
      v: 10,
      user: BOT,
      guilds: [{ id: GUILD, unavailable: true }],
      session_id: this.#session.id,
      resume_gateway_url: this.origin.replace('http', 'ws'),
      application: { id: BOT.id, flags: 0 },
    })
  }

  #dispatch(t: string, d: unknown): void {
    // Without a session Discord keeps nothing for the bot.
    if (!this.#session) return
    const event = { t, s: this.#session.events.length + 1, d }
    this.#session.events.push(event)
    this.#listener.value?.send({ op: 0, ...event })
  }

  // The API

  async handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { pathname } = call.url
    const file = /^\/attachments\/(\d+)\//.exec(pathname)?.[1]
    if (file !== undefined) return this.#download(call, file)
    const path = pathname.replace(/^\/api\/v10/, '')
    if (path.startsWith('/interactions/')) return this.#acknowledge(call, path)
    if (!String(call.headers['user-agent']).startsWith('DiscordBot (')) {
      this.#violation('a request without the user agent of a bot', 0)
      return { status: 403, body: { message: 'blocked', code: 40333 } }
    }
    if (call.headers.authorization !== `Bot ${TOKEN}`)
      return { status: 401, body: { message: '401: Unauthorized', code: 0 } }
    if (path === '/users/@me') return { status: 200, body: { ...BOT, discriminator: '0', avatar: null } }
    if (path === '/gateway/bot') return this.#gateway()
    const [, channel = '', rest = ''] = /^\/channels\/(\d+)(.*)$/.exec(path) ?? []
    if (![DIRECT, GROUP, THREAD].includes(channel))
      return { status: 404, body: { message: 'Unknown Channel', code: 10003 } }
    return this.#channel(call, response, channel, rest)
  }

  #gateway(): PlatformAnswer {
    const limit = { total: 1000, remaining: 999, reset_after: 14_400_000, max_concurrency: 1 }
    return {
      status: 200,
      body: { url: this.origin.replace('http', 'ws'), shards: 1, session_start_limit: limit },
    }
  }

  #channel(call: PlatformCall, response: ServerResponse, channel: string, rest: string) {
    const [, message = '', more = ''] = /^\/messages\/(\d+)(.*)$/.exec(rest) ?? []
    if (rest === '' && call.method === 'GET') return this.#describe(channel)
    if (rest === '/typing' && call.method === 'POST') {
      this.typing.push(placeOf(channel).chatId)
      return { status: 204 }
    }
    if (rest === '/messages' && call.method === 'GET') return this.#list(call, channel)
    if (rest === '/messages' && call.method === 'POST') return this.#create(call, response, channel)
    if (more === '' && call.method === 'PATCH') return this.#edit(message, call.json as Body)
    if (more === '' && call.method === 'DELETE') return this.#remove(message)
    const [, emoji] = /^\/reactions\/([^/]+)\/@me$/.exec(more) ?? []
    if (emoji !== undefined && call.method === 'PUT') {
      this.reactions.push({ messageId: message, emoji: decodeURIComponent(emoji) })
      return { status: 204 }
    }
    if (more === '' && call.method === 'GET') return { status: 200, body: this.#delivered.get(message) }
    return { status: 404, body: { message: '404: Not Found', code: 0 } }
  }

  /** Without what only events have: the server, and the name in it. */
  #list({ url }: PlatformCall, channel: string): PlatformAnswer {
    const limit = Number(url.searchParams.get('limit') ?? 50)
    if (limit < 1 || limit > 100) this.#violation('a wrong number of messages', 0)
    const before = BigInt(url.searchParams.get('before') ?? this.#nextId)
    const messages = [...this.#delivered.values()]
      .filter((message) => message.channel_id === channel && BigInt(message.id) < before)
      .map(({ guild_id: _guild, member: _member, ...message }) => message)
      .toReversed()
    return { status: 200, body: messages.slice(0, limit) }
  }

  #describe(channel: string): PlatformAnswer {
    if (channel === DIRECT) return { status: 200, body: { id: DIRECT, type: 1, recipients: [ADA] } }
    if (channel === THREAD)
      return { status: 200, body: { id: THREAD, type: 11, name: 'a thread', parent_id: GROUP, guild_id: GUILD } }
    return { status: 200, body: { id: GROUP, type: 0, name: 'general', guild_id: GUILD } }
  }

  async #create(call: PlatformCall, response: ServerResponse, channel: string): Promise<PlatformAnswer | undefined> {
    if (this.#globalPauseSecs !== undefined) {
      const body = { message: 'You are being rate limited.', retry_after: this.#globalPauseSecs, global: true }
      this.#globalPauseSecs = undefined
      return { status: 429, body, headers: { 'x-ratelimit-global': 'true' } }
    }
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer') return answerFault(fault, response, FAULT_ANSWERS)
    const form = call.json === undefined ? await call.form() : undefined
    const body = (form ? JSON.parse(String(form.get('payload_json'))) : call.json) as Body
    const wrong = refuse(body, form)
    if (wrong) {
      this.#violation(wrong, 0)
      return { status: 400, body: { message: 'Invalid Form Body', code: 50035, errors: { wrong } } }
    }
    const shown = this.#shown.show({
      id: this.#newId(),
      ...placeOf(channel),
      text: String(body.content ?? ''),
      replyTo: body.message_reference?.message_id,
      files: await filesOf(form),
      buttons: (body.components ?? []).flatMap((row) =>
        row.components.map(({ label, custom_id: value }) => ({ label, value })),
      ),
      key: `${channel} ${String(body.nonce)}`,
    })
    if (fault) return resetConnection(response)
    return { status: 200, body: { id: shown.id, channel_id: channel, content: shown.text, author: BOT } }
  }

  #remove(id: string): PlatformAnswer {
    if (this.#shown.remove(id)) return { status: 204 }
    return { status: 404, body: { message: 'Unknown Message', code: 10008 } }
  }

  #edit(id: string, body: Body): PlatformAnswer {
    const wrong = refuseText(body) ?? (body.allowed_mentions ? undefined : 'an edit that can notify people')
    if (wrong) {
      this.#violation(wrong, 0)
      return { status: 400, body: { message: 'Invalid Form Body', code: 50035 } }
    }
    if (!this.#shown.edit(id, String(body.content)))
      return { status: 404, body: { message: 'Unknown Message', code: 10008 } }
    return { status: 200, body: { id } }
  }

  #acknowledge(call: PlatformCall, path: string): PlatformAnswer {
    const [, id = '', token] = /^\/interactions\/(\d+)\/([^/]+)\/callback$/.exec(path) ?? []
    if (token !== `press-${id}` || (call.json as { type?: unknown }).type !== 6)
      this.#violation('a wrong answer to an interaction', 0)
    this.acknowledged.push(id)
    return { status: 204 }
  }

  #download(call: PlatformCall, id: string): PlatformAnswer {
    if (call.headers.authorization !== undefined) this.#violation('the token was sent to the file server', 0)
    const file = this.#files.get(id)
    if (!file || !call.url.searchParams.has('hm')) return { status: 404 }
    return { status: 200, body: file.bytes, headers: { 'content-type': file.mime } }
  }

  #violation(what: string, code: number): number {
    this.violations.push(what)
    return code
  }
}

function placeOf(channel: string): { chatId: string; threadId?: string } {
  return channel === THREAD ? { chatId: GROUP, threadId: THREAD } : { chatId: channel }
}

function refuseText({ content }: Body): string | undefined {
  if (content !== undefined && (typeof content !== 'string' || content.length > 2000)) return 'a text that is too long'
  return undefined
}

function refuse(body: Body, form: FormData | undefined): string | undefined {
  const { content, nonce, allowed_mentions: allowed, components = [], attachments = [] } = body
  if (refuseText(body)) return refuseText(body)
  if ((content === undefined || content === '') && !form) return 'an empty message'
  if (typeof nonce !== 'string' || nonce.length > 25 || body.enforce_nonce !== true) return 'no nonce of 25 characters'
  if (!Array.isArray(allowed?.parse) || allowed.parse.length > 0) return 'a message that can notify everybody'
  if (body.message_reference && !/^\d+$/.test(String(body.message_reference.message_id))) return 'a wrong reference'
  const wrong = refuseButtons(components)
  if (wrong) return wrong
  for (const { id, filename } of attachments) {
    const file = form?.get(`files[${id}]`)
    if (!(file instanceof File) || file.name !== filename) return 'a file that is announced and missing'
  }
  return undefined
}

function refuseButtons(rows: NonNullable<Body['components']>): string | undefined {
  const buttons = rows.flatMap((row) => row.components)
  if (rows.length > 5 || rows.some((row) => row.type !== 1 || row.components.length > 5)) return 'too many buttons'
  if (buttons.some(({ label, custom_id: id }) => label.length > 80 || id.length > 100 || id === ''))
    return 'a button that is too long'
  return new Set(buttons.map(({ custom_id: id }) => id)).size < buttons.length ? 'two buttons with one id' : undefined
}

async function filesOf(form: FormData | undefined): Promise<readonly PlatformFile[]> {
  return Promise.all([...(form?.values() ?? [])].filter((value) => value instanceof File).map(fileOf))
}

const rateLimited = (seconds: number | undefined): PlatformAnswer =>
  seconds === undefined
    ? { status: 429 }
    : {
        status: 429,
        body: { message: 'You are being rate limited.', retry_after: seconds, global: false },
        headers: { 'retry-after': String(Math.ceil(seconds)) },
      }
/** How Discord says what went wrong. */
const FAULT_ANSWERS = {
  rate_limit: rateLimited,
  server_error: { status: 502 },
  permanent: { status: 403, body: { message: 'Cannot send messages to this user', code: 50007 } },
  auth: { status: 401, body: { message: '401: Unauthorized', code: 0 } },
}
