import { createPrivateKey, sign } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { allFaults, answerFault, fileOf } from './faults.ts'
import { resetConnection, Shown } from './http.ts'
import type { PlatformAnswer, PlatformCall } from './http.ts'
import type {
  FakePlatform,
  PlatformFault,
  PlatformFile,
  PlatformInput,
  PlatformRequest,
  WebhookTarget,
} from './platform.ts'
import { Presence, startSocketServer } from './sockets.ts'
import type { Peer, PeerHandlers } from './sockets.ts'

const APP_ID = '102030405'
const SECRET = 'fakeQqAppSecret0123456789'
const BOT = { id: '6158788878435714165', username: 'svc-bot', bot: true }
const ADA = 'E4F4AEA33253A2797FB897C50B81D7ED'
const GROUP = 'C9F778FE6ADF9D1D1DBE395BF744A33A'
const CHANNEL = '100010'
const GUILD = '18700000000001'
const HEARTBEAT_MS = 41_250
const MAX_REPLIES = 5
const VALID_INTENTS = (1 << 0) | (1 << 1) | (1 << 9) | (1 << 10) | (1 << 12) | (0b111111 << 25)

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
  content?: string
  msg_type?: number
  msg_id?: string
  msg_seq?: number
  media?: { file_info?: string }
  input_notify?: { input_type?: number; input_second?: number }
  file_type?: number
  file_data?: string
  file_name?: string
  srv_send_msg?: boolean
}
/** A message that the bot may answer. */
interface Delivered {
  readonly type: string
  readonly message: { readonly id: string }
  readonly chatId: string
  readonly seqs: Set<number>
  replies: number
}

export interface FakeQq extends FakePlatform {
  /** Frames the adapter sent to the gateway, without tokens. */
  readonly frames: readonly { readonly op: number; readonly d: unknown }[]
  /** Access tokens that were handed out. */
  readonly issued: number
  /** Sends a frame of the gateway to the adapter. */
  sendFrame(frame: unknown): void
  closeWith(code: number): void
  ignoreHeartbeats(): void
  endSession(): void
  /** The access tokens of now are not taken any more. */
  expireTokens(): void
  /** Access tokens hold for so many seconds from now on. */
  tokenSecs: number
  /** Delivers an event of any type. */
  emit(
    type: string,
    message: { readonly id: string } & Readonly<Record<string, unknown>>,
    chatId: string,
  ): Promise<void>
  /** The next message is answered with this status and body, and not shown. */
  answerNext(status: number, body: unknown): void
  /** A reply of somebody else with this number. */
  takeSeq(messageId: string, seq: number): void
  /** A request that QQ signed. */
  signed(
    body: unknown,
    more?: { readonly secret?: string; readonly secsAgo?: number; readonly appId?: string },
  ): PlatformRequest
}

/** The open platform of QQ. Source: https://bot.q.qq.com/wiki/develop/api-v2/ */
export async function startFakeQq(options: { readonly webhook?: boolean } = {}): Promise<FakeQq> {
  const fake = new Qq(options.webhook ?? false)
  const server = await startSocketServer(
    (call, response) => fake.handle(call, response),
    (peer, request) => fake.accept(peer, request.url ?? ''),
  )
  fake.origin = server.origin
  return Object.assign(fake, { [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() })
}

class Qq implements Omit<FakeQq, typeof Symbol.asyncDispose> {
  readonly channel = 'qq'
  readonly chats = { direct: `user:${ADA}`, group: `group:${GROUP}` }
  readonly person = ADA
  readonly redelivers = true
  readonly faults = allFaults
  readonly removes = true
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  readonly frames: { op: number; d: unknown }[] = []
  readonly disconnect?: () => Promise<void>
  readonly waitForListener?: () => Promise<void>
  readonly forgeries?: () => readonly PlatformRequest[]
  origin = ''
  issued = 0
  tokenSecs = 7200
  readonly #isWebhook: boolean
  readonly #shown = new Shown()
  readonly #delivered = new Map<string, Delivered>()
  readonly #files = new Map<string, PlatformFile>()
  readonly #uploads = new Map<string, PlatformFile>()
  readonly #listener = new Presence<Peer>()
  readonly #tokens = new Set<string>()
  #isSecretRevoked = false
  #answer: PlatformAnswer | undefined
  #target: WebhookTarget | undefined
  #session: Session | undefined
  #next = 1
  #isIgnoringHeartbeats = false

  constructor(isWebhook: boolean) {
    this.#isWebhook = isWebhook
    if (isWebhook) {
      this.forgeries = () => this.#forgeries()
      return
    }
    this.waitForListener = async () => {
      await this.#listener.wait()
    }
    this.disconnect = async () => {
      const peer = this.#listener.value
      this.#listener.set(undefined)
      peer?.cut()
    }
  }

  get secrets(): readonly string[] {
    return [SECRET, ...this.#tokens]
  }
  get config() {
    return {
      app_id: APP_ID,
      token: SECRET,
      mode: this.#isWebhook ? 'webhook' : 'websocket',
      base_url: this.origin,
      token_url: `${this.origin}/app/getAppAccessToken`,
    }
  }
  get wrongConfig() {
    return { ...this.config, token: 'anotherSecret' }
  }
  get sent() {
    return this.#shown.sent
  }
  waitForSent = (count: number) => this.#shown.waitForSent(count)
  fail = (fault: PlatformFault) => this.#shown.fail(fault)
  setWebhook = (target: WebhookTarget) => {
    this.#target = target
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
  expireTokens(): void {
    this.#tokens.clear()
  }
  answerNext(status: number, body: unknown): void {
    this.#answer = { status, body }
  }
  takeSeq(messageId: string, seq: number): void {
    this.#delivered.get(messageId)?.seqs.add(seq)
  }

  async deliver(input: PlatformInput): Promise<string> {
    const again = this.#delivered.get(input.redeliveryOf ?? '')
    if (again) {
      await this.#dispatch(again.type, again.message)
      return again.message.id
    }
    const id = `ROBOT1.0_${this.#next++}!`
    const common = {
      id,
      content: this.#markup(input),
      timestamp: '2026-11-20T20:00:00+08:00',
      ...(input.files && { attachments: input.files.map((file) => this.#keep(file)) }),
    }
    // The bot hears itself in the channels of servers only.
    if (input.isOwn) {
      const place = { channel_id: CHANNEL, guild_id: GUILD, mentions: [] }
      await this.emit('MESSAGE_CREATE', { ...common, ...place, author: BOT }, `channel:${CHANNEL}`)
    } else if (input.isGroup) {
      const type = input.mentionsBot ? 'GROUP_AT_MESSAGE_CREATE' : 'GROUP_MESSAGE_CREATE'
      const message = { ...common, group_openid: GROUP, author: { member_openid: ADA, username: 'Ada' } }
      await this.emit(type, message, `group:${GROUP}`)
    } else await this.emit('C2C_MESSAGE_CREATE', { ...common, author: { user_openid: ADA } }, `user:${ADA}`)
    return id
  }

  async emit(
    type: string,
    message: { readonly id: string } & Readonly<Record<string, unknown>>,
    chatId: string,
  ): Promise<void> {
    this.#delivered.set(message.id, { type, message, chatId, seqs: new Set(), replies: 0 })
    await this.#dispatch(type, message)
  }

  /** What QQ sends is escaped; the mention of the bot leaves a space. */
  #markup({ text, mentionsBot }: PlatformInput): string {
    const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
    return mentionsBot ? ` ${escaped}` : escaped
  }

  #keep(file: PlatformFile) {
    const id = String(this.#next++)
    this.#files.set(id, file)
    const url = `${this.origin}/download/${id}?rkey=fake`
    return {
      content_type: file.kind === 'file' ? 'file' : file.mime,
      filename: file.name,
      size: file.bytes.length,
      url,
    }
  }

  async #dispatch(t: string, d: unknown): Promise<void> {
    if (this.#isWebhook) {
      const answer = await this.#target?.(this.signed({ id: `${t}:${this.#next++}`, op: 0, s: this.#next, t, d }))
      if (answer?.status !== 200 || JSON.parse(answer.body).op !== 12)
        throw new Error(`the webhook answered ${answer?.status}`)
      return
    }
    // Without a session QQ keeps nothing for the bot.
    if (!this.#session) return
    const event = { t, s: this.#session.events.length + 1, d }
    this.#session.events.push(event)
    this.#listener.value?.send({ op: 0, id: `${t}:1`, ...event })
  }

  // The webhook

  signed(
    body: unknown,
    { secret = SECRET, secsAgo = 0, appId = APP_ID }: { secret?: string; secsAgo?: number; appId?: string } = {},
  ): PlatformRequest {
    const bytes = Buffer.from(JSON.stringify(body))
    const timestamp = String(Math.floor(Date.now() / 1000) - secsAgo)
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'QQBot-Callback',
      'x-bot-appid': appId,
      'x-signature-method': 'Ed25519',
      'x-signature-timestamp': timestamp,
      'x-signature-ed25519': signatureOf(secret, Buffer.concat([Buffer.from(timestamp), bytes])),
    }
    return { method: 'POST', headers, body: bytes }
  }

  #forgeries(): readonly PlatformRequest[] {
    const message = { id: 'forged', content: 'forged', author: { user_openid: ADA }, timestamp: '2026-11-20T20:00:00Z' }
    const event = { op: 0, s: 1, t: 'C2C_MESSAGE_CREATE', d: message }
    const good = this.signed(event)
    const { 'x-signature-ed25519': signature = '', ...unsigned } = good.headers
    const question = { op: 13, d: { plain_token: 'Arq0D5A61EgUu4OxUvOp', event_ts: '1725442341' } }
    return [
      { ...good, headers: {} },
      { ...good, headers: unsigned },
      { ...good, headers: { ...good.headers, 'x-signature-ed25519': `${signature.slice(0, -2)}zz` } },
      this.signed(event, { secret: 'anotherSecret' }),
      { ...good, body: Buffer.from(Buffer.from(good.body).toString().replace('forged', 'altered')) },
      this.signed(event, { secsAgo: 3600 }),
      { ...good, headers: { ...good.headers, 'x-signature-timestamp': String(Math.floor(Date.now() / 1000) + 1) } },
      this.signed(event, { appId: '999' }),
      { ...this.signed(question), headers: { 'x-bot-appid': APP_ID } },
      { ...good, method: 'POST', body: new Uint8Array() },
    ]
  }

  // The gateway

  accept(peer: Peer, url: string): PeerHandlers | number {
    if (url !== '/websocket/') return this.#violation('a wrong address', 4000)
    peer.send({ op: 10, d: { heartbeat_interval: HEARTBEAT_MS } })
    let isIdentified = false
    return {
      frame: (raw) => {
        const frame = raw as { op?: number; d?: unknown } | undefined
        if (typeof frame?.op !== 'number') return peer.close(this.#violation('a frame that is not JSON', 4002))
        if (frame.op === 1) {
          this.frames.push({ op: 1, d: frame.d })
          if (!this.#isIgnoringHeartbeats) peer.send({ op: 11 })
        } else if (frame.op !== 2 && frame.op !== 6) peer.close(this.#violation(`the opcode ${frame.op}`, 4001))
        else if (isIdentified) peer.close(this.#violation('a second identify', 4005))
        else isIdentified = this.#begin(peer, frame.op, frame.d as Record<string, unknown>)
      },
      closed: () => this.#listener.remove(peer),
    }
  }

  #begin(peer: Peer, op: number, { token, ...d }: Record<string, unknown>): boolean {
    this.frames.push({ op, d })
    if (!this.#isToken(String(token))) {
      peer.close(4004)
      return false
    }
    if (op === 2) return this.#identify(peer, d)
    const session = this.#session
    if (!session || d['session_id'] !== session.id) {
      peer.send({ op: 9, d: false })
      return false
    }
    for (const event of session.events) if (event.s > Number(d['seq'])) peer.send({ op: 0, ...event })
    this.#listener.set(peer)
    void this.#dispatch('RESUMED', '')
    return true
  }

  #identify(peer: Peer, { intents, shard }: Record<string, unknown>): boolean {
    if (typeof intents !== 'number' || (intents & ~VALID_INTENTS) !== 0) {
      peer.close(this.#violation('intents that are none', 4013))
      return false
    }
    if (JSON.stringify(shard) !== '[0,1]') {
      peer.close(this.#violation('a wrong shard', 4010))
      return false
    }
    this.#session = { id: `082ee18c-${this.#next++}`, events: [] }
    this.#listener.set(peer)
    void this.#dispatch('READY', { version: 1, session_id: this.#session.id, user: BOT, shard: [0, 1] })
    return true
  }

  #isToken(header: string | undefined): boolean {
    return header?.startsWith('QQBot ') === true && this.#tokens.has(header.slice('QQBot '.length))
  }

  // The API

  async handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { method, url, headers } = call
    if (url.pathname === '/app/getAppAccessToken') return this.#exchange(call)
    const file = this.#files.get(/^\/download\/(\d+)$/.exec(url.pathname)?.[1] ?? '')
    if (file) {
      if (headers.authorization !== undefined) this.#violation('the token was sent to the file server', 0)
      return { status: 200, body: file.bytes, headers: { 'content-type': file.mime } }
    }
    if (!this.#isToken(headers.authorization)) return EXPIRED
    const route = `${method} ${url.pathname}`
    if (route === 'GET /users/@me') return { status: 200, body: { ...BOT, avatar: '', union_openid: '' } }
    if (route === 'GET /gateway')
      return { status: 200, body: { url: `${this.origin.replace('http', 'ws')}/websocket/` } }
    const [, place = '', id = '', rest = ''] =
      /^\/(v2\/users|v2\/groups|channels|dms)\/([^/]+)(\/.*)$/.exec(url.pathname) ?? []
    const chatId = `${KINDS[place]}:${decodeURIComponent(id)}`
    if (!this.#isChat(chatId)) return this.#refuse(`there is no ${chatId}`, 10_003, 404)
    if (method === 'POST' && rest === '/files') return this.#upload(call.json as Body, chatId)
    if (method === 'POST' && rest === '/messages') return this.#create(call, response, chatId)
    const [, message] = /^\/messages\/([^/]+)$/.exec(rest) ?? []
    if (method === 'DELETE' && message !== undefined)
      return this.#shown.remove(decodeURIComponent(message))
        ? { status: 200 }
        : { status: 400, body: { code: 306_002, message: 'msgid error' } }
    return this.#refuse(`the request ${route}`, 11_255, 404)
  }

  #isChat(chatId: string): boolean {
    const known = [this.chats.direct, this.chats.group, `channel:${CHANNEL}`, `dm:${GUILD}`]
    return known.includes(chatId)
  }

  /** Errors of this address have status 200. */
  #exchange({ json, headers }: PlatformCall): PlatformAnswer {
    const { appId, clientSecret } = (json ?? {}) as { appId?: unknown; clientSecret?: unknown }
    if (headers.authorization !== undefined) this.#violation('a token was sent for a token', 0)
    if (appId !== APP_ID || clientSecret !== SECRET || this.#isSecretRevoked) {
      this.#isSecretRevoked = false
      return { status: 200, body: { code: 100_016, message: 'invalid appid or secret' } }
    }
    const token = `fake-qq-access-token-${++this.issued}`
    this.#tokens.add(token)
    return { status: 200, body: { access_token: token, expires_in: String(this.tokenSecs) } }
  }

  #upload(body: Body, chatId: string): PlatformAnswer {
    const { file_type: type = 0, file_data: data = '', file_name: name, srv_send_msg: isSent } = body
    if (!/^(user|group):/.test(chatId) || isSent !== false || data === '' || type < 1 || type > 4)
      return this.#refuse('an upload that is none', 40_093_002)
    if ((type === 4) !== (name !== undefined)) return this.#refuse('the name of an upload', 40_093_002)
    const bytes = Buffer.from(data, 'base64')
    const info = `info-${this.#next++}`
    const kind = (['image', 'video', 'audio', 'file'] as const)[type - 1] ?? 'file'
    this.#uploads.set(`${chatId} ${info}`, { kind, name: name ?? 'dot.png', mime: '', bytes: new Uint8Array(bytes) })
    return { status: 200, body: { file_uuid: info, file_info: info, ttl: 3600 } }
  }

  async #create(call: PlatformCall, response: ServerResponse, chatId: string): Promise<PlatformAnswer | undefined> {
    const form = call.json === undefined ? await call.form() : undefined
    const body = form ? fieldsOf(form) : (call.json as Body)
    const isOfServer = /^(channel|dm):/.test(chatId)
    if (body.msg_type === 6) return this.#type(body, chatId)
    if (this.#answer) {
      const answer = this.#answer
      this.#answer = undefined
      return answer
    }
    const fault = this.#shown.takeFault()
    if (fault?.kind === 'auth') {
      this.#tokens.clear()
      this.#isSecretRevoked = true
      return EXPIRED
    }
    if (fault && fault.kind !== 'lost_answer') return answerFault(fault, response, FAULT_ANSWERS)
    const wrong = isOfServer ? refuseOfServer(body, form) : this.#refuseOfChat(body, chatId)
    if (wrong !== undefined) return this.#refuse(wrong, 50_035)
    const answered = body.msg_id === undefined ? undefined : this.#delivered.get(body.msg_id)
    if (body.msg_id !== undefined) {
      if (answered?.chatId !== chatId) return this.#refuse('a reply to a message of another chat', 40_034_024)
      if (!isOfServer && answered.seqs.has(body.msg_seq ?? 1)) return DUPLICATE
      if (answered.replies >= MAX_REPLIES)
        return { status: 400, body: { code: 40_034_128, message: 'reply exceeds limit' } }
      answered.seqs.add(body.msg_seq ?? 1)
      answered.replies++
    }
    const upload = this.#uploads.get(`${chatId} ${body.media?.file_info}`)
    const picture = form?.get('file_image')
    const shown = this.#shown.show({
      id: `ROBOT1.0_sent_${this.#next++}`,
      chatId,
      text: isOfServer ? unescaped(body.content ?? '') : (body.content ?? '').trim(),
      replyTo: body.msg_id,
      files: picture instanceof File ? [await fileOf(picture)] : upload ? [upload] : [],
      buttons: [],
    })
    return fault ? resetConnection(response) : { status: 200, body: { id: shown.id, timestamp: 1_763_640_000 } }
  }

  #refuseOfChat(body: Body, chatId: string): string | undefined {
    const { content = '', msg_type: type, msg_id: id, msg_seq: seq, media } = body
    if (content.length > 2000) return 'a text that is too long'
    if (content === '') return 'an empty message'
    if (type !== 0 && type !== 7) return `a message of type ${type}`
    if (type === 7 && !this.#uploads.has(`${chatId} ${media?.file_info}`)) return 'a file that was not uploaded'
    if ((id === undefined) !== (seq === undefined)) return 'a reply without its number'
    if (seq !== undefined && !(Number.isInteger(seq) && seq > 0 && seq < 65_536)) return `the number ${seq}`
    return undefined
  }

  #type({ input_notify: notify, msg_id: id = '', msg_seq: seq }: Body, chatId: string): PlatformAnswer {
    const isRight = chatId.startsWith('user:') && notify?.input_type === 1 && Number.isInteger(seq)
    const { input_second: seconds = 0 } = notify ?? {}
    if (!isRight || !this.#delivered.has(id) || seconds < 1 || seconds > 60)
      return this.#refuse('an indicator that is none', 50_059)
    this.typing.push(chatId)
    return { status: 200, body: { id: 'typing', timestamp: 1 } }
  }

  #refuse(what: string, code: number, status = 400): PlatformAnswer {
    this.violations.push(what)
    return { status, body: { message: what, code, err_code: code, trace_id: 'fake' } }
  }
  #violation(what: string, code: number): number {
    this.violations.push(what)
    return code
  }
}

const KINDS: Readonly<Record<string, string>> = {
  'v2/users': 'user',
  'v2/groups': 'group',
  channels: 'channel',
  dms: 'dm',
}
const EXPIRED: PlatformAnswer = {
  status: 401,
  body: { message: 'token not exist or expire', code: 11_244, err_code: 11_244, trace_id: 'fake' },
}
const DUPLICATE: PlatformAnswer = { status: 400, body: { message: '消息被去重，请检查请求msgseq', code: 40_054_005 } }
/** How QQ says what went wrong. */
const FAULT_ANSWERS = {
  rate_limit: (seconds: number | undefined): PlatformAnswer => ({
    status: 429,
    body: { message: 'msg limit exceed', code: 22_009 },
    ...(seconds !== undefined && { headers: { 'retry-after': String(seconds) } }),
  }),
  server_error: { status: 500, body: { message: 'send error', code: 304_016 } },
  permanent: { status: 400, body: { message: 'URL_NOT_ALLOWED', code: 304_003 } },
  // Answered before.
  auth: EXPIRED,
}

function signatureOf(secret: string, content: Uint8Array): string {
  let seed = secret
  while (seed.length < 32) seed += seed
  const prefix = Buffer.from('302e020100300506032b657004220420', 'hex')
  const der = Buffer.concat([prefix, Buffer.from(seed.slice(0, 32))])
  return sign(null, content, createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })).toString('hex')
}

function fieldsOf(form: FormData): Body {
  const texts = [...form].filter(([, value]) => typeof value === 'string')
  return Object.fromEntries(texts) as Body
}

function refuseOfServer({ content = '', msg_type: type, msg_seq: seq }: Body, form: FormData | undefined) {
  if (type !== undefined || seq !== undefined) return 'a field that servers do not have'
  if (content === '' && !(form?.get('file_image') instanceof File)) return 'an empty message'
  return /@everyone|<@/.test(content) ? 'a mention' : undefined
}

function unescaped(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
}
