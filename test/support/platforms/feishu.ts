import { createCipheriv, createHash, randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { allFaults, answerFault, fileOf } from './faults.ts'
import { decodeFeishuFrame, encodeFeishuFrame } from './feishu-frame.ts'
import type { FeishuFrame } from './feishu-frame.ts'
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

const APP = 'cli_a1b2c3d4e5f60708'
const SECRET = 'fakeFeishuAppSecret0123456789'
const ENCRYPT_KEY = 'fakeFeishuEncryptKey'
const VERIFICATION = 'fakeFeishuVerificationToken'
const TENANT = '2ed263bf32cf1651'
const BOT = 'ou_bot'
const ADA = 'ou_ada'
const DIRECT = 'oc_direct'
const GROUP = 'oc_group'
const THREAD = 'omt_thread'
const EMOJI: Readonly<Record<string, string>> = { THUMBSUP: '👍', GLANCE: '👀', CheckMark: '✅' }

interface Body {
  receive_id?: string
  msg_type?: string
  content?: string
  uuid?: string
  reaction_type?: { emoji_type?: string }
}
interface Card {
  schema?: string
  config?: { update_multi?: boolean }
  body?: {
    elements?: { tag: string; content?: string; text?: { content: string }; behaviors?: { value: unknown }[] }[]
  }
}
interface Shape {
  readonly text: string
  readonly files: readonly PlatformFile[]
  readonly buttons: readonly { readonly label: string; readonly value: string }[]
}

export interface FakeFeishu extends FakePlatform {
  /** Events that were answered with success, by message. */
  readonly acknowledged: readonly string[]
  /** Access tokens that were issued. */
  readonly issued: number
  /** Reactions that are shown: the message and the name of Feishu. */
  readonly shownReactions: readonly string[]
  /** Signs of life of the adapter. */
  readonly pings: number
  /** The number of frames that an event is cut into. */
  fragments: number
  /** The number of every event: more than JavaScript counts exactly. */
  logId: bigint
  /** Names are told to the app. */
  tellsNames: boolean
  /** The token that was issued holds no more. */
  revokeToken(): void
  /** The message was taken back by its author. */
  recall(id: string): void
  /** Something that is no frame. */
  sendRaw(data: unknown): void
  /** An event as it is. */
  emit(event: object): Promise<void>
  /** What Feishu sends when the address of the webhook is entered. */
  verifyUrl(token?: string): Promise<{ readonly status: number; readonly body: string }>
  /** A request with this event, encrypted and signed as asked. */
  request(event: object, options?: SignOptions): PlatformRequest
  /** The event of a message. */
  messageEvent(message: object, more?: object): object
}
interface SignOptions {
  readonly key?: string
  readonly time?: number
  readonly isPlain?: boolean
}

/** Feishu's open platform, over a long connection or with a webhook: https://open.feishu.cn/document/. */
export async function startFakeFeishu(options: { readonly webhook?: boolean } = {}): Promise<FakeFeishu> {
  const fake = new Feishu(options.webhook ?? false)
  const server = await startSocketServer(
    (call, response) => fake.handle(call, response),
    (peer, request) => fake.accept(peer, request.url ?? ''),
  )
  fake.origin = server.origin
  return Object.assign(fake, { [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() })
}

class Feishu implements Omit<FakeFeishu, typeof Symbol.asyncDispose> {
  readonly channel = 'feishu'
  readonly chats = { direct: DIRECT, group: GROUP, thread: THREAD }
  readonly person = ADA
  readonly faults = allFaults
  readonly redelivers = true
  readonly answersInJson = true
  readonly removes = true
  readonly lacks = new Set(['edits of others'] as const)
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  readonly acknowledged: string[] = []
  readonly disconnect?: () => Promise<void>
  readonly waitForListener?: () => Promise<void>
  readonly forgeries?: () => readonly PlatformRequest[]
  origin = ''
  issued = 0
  pings = 0
  fragments = 1
  logId = 9_223_372_036_854_775_001n
  tellsNames = true
  readonly #isWebhook: boolean
  readonly #shown = new Shown()
  readonly #events = new Map<string, object>()
  readonly #buttons: { value: unknown }[] = []
  readonly #chatOf = new Map<string, string>()
  readonly #files = new Map<string, PlatformFile>()
  readonly #reactions = new Map<string, string>()
  readonly #recalled = new Set<string>()
  readonly #tickets = new Set<string>()
  readonly #waiting: { id: string; event: object }[] = []
  readonly #listener = new Presence<Peer>()
  #token = ''
  #webhook: WebhookTarget | undefined
  #next = 1

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
      const peer = await this.#listener.wait()
      this.#listener.remove(peer)
      peer.cut()
    }
  }

  get config() {
    const base = { app_id: APP, token: SECRET, base_url: this.origin }
    if (!this.#isWebhook) return base
    return { ...base, mode: 'webhook', encrypt_key: ENCRYPT_KEY, verification_token: VERIFICATION }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrongFeishuAppSecret' }
  }
  get secrets() {
    return [SECRET, ENCRYPT_KEY, VERIFICATION, this.#token || SECRET]
  }
  get sent() {
    return this.#shown.sent
  }
  get shownReactions() {
    return [...this.#reactions.values()]
  }
  waitForSent = (count: number) => this.#shown.waitForSent(count)
  fail = (fault: PlatformFault) => this.#shown.fail(fault)
  setWebhook = (target: WebhookTarget) => {
    this.#webhook = target
  }
  revokeToken(): void {
    this.#token = ''
  }
  recall(id: string): void {
    this.#recalled.add(id)
  }

  // Events

  async deliver(input: PlatformInput): Promise<string> {
    const known = this.#events.get(input.redeliveryOf ?? '')
    if (known) {
      await this.#push(input.redeliveryOf ?? '', known)
      return input.redeliveryOf ?? ''
    }
    if (input.button !== undefined) return this.#press(input.button)
    const files = input.files ?? []
    let id = ''
    for (const file of files.length > 0 ? files : [undefined]) {
      id = `om_${this.#next++}`
      const event = this.#eventOf(input, id, file)
      this.#events.set(id, event)
      await this.#push(id, event)
    }
    return id
  }
  sendRaw = (data: unknown): void => this.#listener.value?.send(data)
  emit = (event: object) => this.#push(`ev_${this.#next++}`, event)

  #eventOf(input: PlatformInput, id: string, file: PlatformFile | undefined): object {
    const isGroup = input.isGroup || input.threadId !== undefined
    const chat = isGroup ? GROUP : DIRECT
    this.#chatOf.set(id, chat)
    const text = input.mentionsBot ? `@_user_1 ${input.text}` : input.text
    const message = {
      message_id: id,
      ...(input.threadId !== undefined && { thread_id: input.threadId }),
      ...(input.replyTo !== undefined && { root_id: input.replyTo, parent_id: input.replyTo }),
      create_time: String(1_763_640_000_000 + this.#next),
      update_time: String(1_763_640_000_000 + this.#next),
      chat_id: chat,
      chat_type: isGroup ? 'group' : 'p2p',
      ...(file ? this.#fileContent(file, id) : { message_type: 'text', content: JSON.stringify({ text }) }),
      ...(input.mentionsBot && {
        mentions: [{ key: '@_user_1', id: { open_id: BOT, union_id: 'on_bot' }, name: 'Helper', tenant_key: TENANT }],
      }),
    }
    return this.messageEvent(message, input.isOwn ? { sender_id: { open_id: BOT }, sender_type: 'app' } : {})
  }

  messageEvent(message: object, more: object = {}): object {
    const sender = { sender_id: { open_id: ADA, union_id: 'on_ada' }, sender_type: 'user', tenant_key: TENANT, ...more }
    return this.#envelope('im.message.receive_v1', { sender, message })
  }

  #envelope(type: string, event: object): object {
    return {
      schema: '2.0',
      header: {
        event_id: `ev_${this.#next++}`,
        event_type: type,
        create_time: type.startsWith('card') ? '1763640000000000' : '1763640000000',
        token: VERIFICATION,
        app_id: APP,
        tenant_key: TENANT,
      },
      event,
    }
  }

  #fileContent(file: PlatformFile, messageId: string) {
    const key = `${file.kind === 'image' ? 'img' : 'file'}_${this.#next++}`
    this.#files.set(`${messageId}/${key}`, file)
    if (file.kind === 'image') return { message_type: 'image', content: JSON.stringify({ image_key: key }) }
    return { message_type: 'file', content: JSON.stringify({ file_key: key, file_name: file.name }) }
  }

  async #press(answer: string): Promise<string> {
    const button = this.#buttons.find(({ value }) => (value as { answer?: string }).answer === answer)
    const event = this.#envelope('card.action.trigger', {
      operator: { tenant_key: TENANT, open_id: ADA, union_id: 'on_ada' },
      token: 'c-1',
      action: { value: button?.value, tag: 'button' },
      host: 'im_message',
      context: { open_message_id: this.sent.at(-1)?.id ?? 'om_0', open_chat_id: DIRECT },
    })
    const { event_id: id } = (event as { header: { event_id: string } }).header
    await this.#push(id, event)
    return id
  }

  async #push(id: string, event: object): Promise<void> {
    if (!this.#isWebhook) {
      this.#waiting.push({ id, event })
      const peer = this.#listener.value
      if (peer) this.#sendEvent(peer, id, event)
      return
    }
    const target = this.#webhook
    if (!target) throw new Error('no webhook')
    const { status } = await target(this.request(event))
    if (status !== 200) throw new Error(`the webhook answered ${status}`)
  }

  // The webhook

  request(event: object, { key = ENCRYPT_KEY, time = Math.floor(Date.now() / 1000), isPlain }: SignOptions = {}) {
    const text = JSON.stringify(event)
    const body = isPlain ? text : JSON.stringify({ encrypt: encrypted(text) })
    const nonce = randomBytes(8).toString('hex')
    const signature = createHash('sha256').update(`${time}${nonce}${key}${body}`).digest('hex')
    return {
      method: 'POST' as const,
      headers: {
        'content-type': 'application/json; charset=utf-8',
        'x-lark-request-timestamp': String(time),
        'x-lark-request-nonce': nonce,
        'x-lark-signature': signature,
      } as Record<string, string>,
      body: Buffer.from(body),
    }
  }
  verifyUrl(token = VERIFICATION) {
    const body = { challenge: 'prove it', token, type: 'url_verification' }
    const { headers: _, ...unsigned } = this.request(body)
    const target = this.#webhook
    if (!target) throw new Error('no webhook')
    return target({ ...unsigned, headers: { 'content-type': 'application/json' } })
  }

  #forgeries(): readonly PlatformRequest[] {
    const content = JSON.stringify({ text: 'forged' })
    const message = {
      message_id: 'om_forged',
      create_time: '1763640000000',
      chat_id: DIRECT,
      chat_type: 'p2p',
      content,
    }
    const event = this.messageEvent({ ...message, message_type: 'text' })
    const good = this.request(event)
    const { 'x-lark-signature': _, ...unsigned } = good.headers
    const plain = this.request(event, { isPlain: true })
    const foreign = structuredClone(event) as { header: { token: string } }
    foreign.header.token = 'another'
    return [
      { ...good, headers: unsigned },
      { ...plain, headers: unsigned },
      { ...good, headers: { ...good.headers, 'x-lark-signature': '00' } },
      this.request(event, { key: 'another key' }),
      { ...plain, body: Buffer.from(Buffer.from(plain.body).toString().replace('forged', 'changed')) },
      this.request(event, { time: Math.floor(Date.now() / 1000) - 40_000 }),
      { ...good, headers: { ...good.headers, 'x-lark-request-timestamp': '' } },
      this.request(foreign),
      { ...good, body: Buffer.from(JSON.stringify({ encrypt: Buffer.from('nonsense').toString('base64') })) },
      this.request({ type: 'url_verification', challenge: 'x', token: 'another' }),
    ]
  }

  // The long connection

  accept(peer: Peer, url: string): PeerHandlers | number {
    const { searchParams } = new URL(url, this.origin)
    if (!this.#tickets.delete(searchParams.get('ticket') ?? '')) {
      this.violations.push('a long connection without a ticket, or with a used one')
      return 4001
    }
    this.#listener.set(peer)
    for (const { id, event } of this.#waiting) this.#sendEvent(peer, id, event)
    return {
      frame: () => this.violations.push('a text instead of a frame'),
      bytes: (bytes) => this.#answered(bytes, peer),
      closed: () => this.#listener.remove(peer),
    }
  }

  #sendEvent(peer: Peer, id: string, event: object): void {
    const whole = Buffer.from(JSON.stringify(event))
    const size = Math.ceil(whole.length / this.fragments)
    for (let seq = 0; seq < this.fragments; seq++) {
      const headers = { type: 'event', message_id: id, sum: String(this.fragments), seq: String(seq), trace_id: 'tr' }
      const payload = whole.subarray(seq * size, (seq + 1) * size)
      peer.send(encodeFeishuFrame({ service: 33, method: 1, headers, payload, logId: this.logId }))
    }
  }

  #answered(bytes: Uint8Array, peer: Peer): void {
    let frame: FeishuFrame
    try {
      frame = decodeFeishuFrame(bytes)
    } catch (error) {
      this.violations.push(`a frame that is none: ${String(error)}`)
      return
    }
    const { headers, method, payload, service } = frame
    if (service !== 33) this.violations.push('a frame of another service')
    if (method === 0 && headers['type'] === 'ping') {
      this.pings++
      const config = Buffer.from(JSON.stringify({ PingInterval: 120, ReconnectCount: -1 }))
      peer.send(encodeFeishuFrame({ ...frame, headers: { type: 'pong' }, payload: config }))
      return
    }
    const { code } = JSON.parse(Buffer.from(payload).toString()) as { code?: number }
    const id = headers['message_id'] ?? ''
    const index = this.#waiting.findIndex((waiting) => waiting.id === id)
    if (method !== 1 || headers['type'] !== 'event' || index === -1) this.violations.push('an answer to nothing')
    else if (frame.logId !== this.logId) this.violations.push('an answer with another number')
    else if (code === 200) {
      this.#waiting.splice(index, 1)
      this.acknowledged.push(id)
    }
  }

  // The API

  async handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { pathname } = call.url
    if (pathname === '/callback/ws/endpoint') return this.#endpoint(call)
    if (pathname === '/open-apis/auth/v3/tenant_access_token/internal') return this.#issue(call)
    if (call.headers.authorization !== `Bearer ${this.#token}` || this.#token === '')
      return refused(400, 99_991_663, 'Invalid access token for authorization. Please make a test with token attached.')
    const route = `${call.method} ${pathname.replace('/open-apis', '')}`
    const body = (call.json ?? {}) as Body
    if (route === 'GET /bot/v3/info') return done({ bot: { open_id: BOT, app_name: 'Helper', activate_status: 2 } })
    if (route === 'POST /im/v1/messages') return this.#create(call, body, response)
    if (route === 'POST /im/v1/images' || route === 'POST /im/v1/files') return this.#upload(call)
    const user = /^GET \/contact\/v3\/users\/(.+)$/.exec(route)?.[1]
    if (user !== undefined) return this.#user(user)
    const chat = /^GET \/im\/v1\/chats\/(.+)$/.exec(route)?.[1]
    if (chat !== undefined) return this.#chat(chat)
    const [, verb = '', id = '', rest = ''] = /^(\w+) \/im\/v1\/messages\/(om_\w+)(\/.*)?$/.exec(route) ?? []
    return this.#ofMessage(`${verb} ${rest}`, id, call, response) ?? this.#refuse(`the request ${route}`)
  }

  #endpoint({ json, method }: PlatformCall): PlatformAnswer {
    const { AppID, AppSecret } = (json ?? {}) as { AppID?: string; AppSecret?: string }
    if (method !== 'POST' || AppID !== APP || AppSecret !== SECRET) return refused(200, 514, 'auth failed')
    const ticket = `ticket-${this.#next++}`
    this.#tickets.add(ticket)
    const URL = `${this.origin.replace('http', 'ws')}/ws/v2?fpid=493&device_id=7&service_id=33&ticket=${ticket}`
    const ClientConfig = { ReconnectCount: -1, ReconnectInterval: 120, ReconnectNonce: 30, PingInterval: 120 }
    return done({ data: { URL, ClientConfig } })
  }

  #issue({ json }: PlatformCall): PlatformAnswer {
    const { app_id: app, app_secret: secret } = (json ?? {}) as { app_id?: string; app_secret?: string }
    if (app !== APP || secret !== SECRET) return refused(200, 10_014, 'app secret invalid')
    this.#token = `t-fake-${++this.issued}`
    return done({ tenant_access_token: this.#token, expire: 7200 })
  }

  #create(call: PlatformCall, body: Body, response: ServerResponse): PlatformAnswer | undefined {
    const type = call.url.searchParams.get('receive_id_type')
    const place = body.receive_id ?? ''
    const isThread = type === 'thread_id' && place === THREAD
    if (!isThread && !(type === 'chat_id' && [DIRECT, GROUP].includes(place)))
      return this.#refuse('a destination that is none', 230_001)
    return this.#send(call, body, response, { chatId: isThread ? GROUP : place, ...(isThread && { threadId: place }) })
  }

  #send(
    call: PlatformCall,
    body: Body,
    response: ServerResponse,
    place: { readonly chatId: string; readonly threadId?: string; readonly replyTo?: string },
  ): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer')
      return answerFault(fault, response, {
        rate_limit: (seconds) => ({
          ...refused(429, 99_991_400, 'request trigger frequency limit'),
          ...(seconds !== undefined && { headers: { 'x-ogw-ratelimit-reset': String(seconds) } }),
        }),
        server_error: refused(500, 2200, 'internal error'),
        permanent: refused(400, 230_002, 'Bot/User can NOT be out of the chat.'),
        auth: refused(400, 99_991_662, 'app not in use'),
      })
    const { uuid = '', msg_type: type = '', content = '' } = body
    if (uuid === '' || uuid.length > 50) return this.#refuse('a message without a key, or with a long one', 230_001)
    const shape = this.#shapeOf(type, content, call.bytes.length)
    if (typeof shape === 'number') return refused(400, shape, 'invalid content')
    const key = `${place.chatId} ${uuid}`
    const shown = this.#shown.show({ id: `om_${this.#next++}`, ...place, ...shape, key })
    this.#chatOf.set(shown.id, place.chatId)
    return fault ? resetConnection(response) : done({ data: { message_id: shown.id, chat_id: place.chatId } })
  }

  /** What a message shows, or the code of the refusal. */
  #shapeOf(type: string, content: string, size: number): Shape | number {
    const json = JSON.parse(content) as Card & { image_key?: string; file_key?: string }
    if (type === 'image' || type === 'file') {
      const file = this.#files.get(json.image_key ?? json.file_key ?? '')
      return file ? { text: '', files: [file], buttons: [] } : this.#violation('a file that was not uploaded', 230_001)
    }
    if (type !== 'interactive') return this.#violation(`a message of the type ${type}`, 230_001)
    if (size > 30 * 1024) return this.#violation('a card that is too large', 230_025)
    const elements = json.body?.elements ?? []
    if (json.schema !== '2.0' || json.config?.update_multi !== true || elements.length === 0 || elements.length > 200)
      return this.#violation('a card that is none', 230_099)
    const buttons = elements.filter(({ tag }) => tag === 'button')
    if (buttons.some(({ text }) => (text?.content.length ?? 101) > 100))
      return this.#violation('a button that is none', 230_099)
    this.#buttons.push(...buttons.flatMap(({ behaviors = [] }) => behaviors))
    const texts = elements.filter(({ tag }) => tag === 'markdown').map(({ content: text = '' }) => text)
    return {
      text: texts.join('\n'),
      files: [],
      buttons: buttons.map(({ text, behaviors }) => ({
        label: text?.content ?? '',
        value: ((behaviors?.[0]?.value ?? {}) as { answer?: string }).answer ?? '',
      })),
    }
  }

  #ofMessage(action: string, id: string, call: PlatformCall, response: ServerResponse): PlatformAnswer | undefined {
    if (id === '') return undefined
    if (this.#recalled.has(id)) return refused(400, 230_011, 'The message is recalled.')
    const body = (call.json ?? {}) as Body
    const chatId = this.#chatOf.get(id)
    if (chatId === undefined) return this.#refuse('a message that is none', 230_001)
    if (action === 'POST /reply') return this.#send(call, body, response, { chatId, replyTo: id })
    if (action === 'POST /reactions') return this.#react(id, chatId, body.reaction_type?.emoji_type ?? '')
    if (action === 'PATCH ') return this.#patch(id, call, body)
    if (action === 'DELETE ')
      return this.#shown.remove(id) ? done({ data: {} }) : refused(400, 230_110, 'The message is deleted.')
    const [, reaction] = /^DELETE \/reactions\/(.+)$/.exec(action) ?? []
    if (reaction !== undefined)
      return this.#reactions.delete(reaction) ? done({ data: {} }) : this.#refuse('a reaction that is none')
    const [, key] = /^GET \/resources\/(.+)$/.exec(action) ?? []
    return key === undefined ? undefined : this.#download(`${id}/${key}`, call.url.searchParams.get('type'))
  }

  #patch(id: string, call: PlatformCall, { content = '' }: Body): PlatformAnswer {
    const shape = this.#shapeOf('interactive', content, call.bytes.length)
    if (typeof shape === 'number') return refused(400, shape, 'invalid content')
    return this.#shown.edit(id, shape.text) ? done({ data: {} }) : this.#refuse('an edit of a message of others')
  }

  #react(id: string, chatId: string, emoji: string): PlatformAnswer {
    if (emoji === '') return this.#refuse('a reaction without a name', 231_001)
    const reaction = `r-${this.#next++}`
    this.#reactions.set(reaction, `${id} ${emoji}`)
    if (emoji === 'Typing') this.typing.push(chatId)
    else this.reactions.push({ messageId: id, emoji: EMOJI[emoji] ?? '' })
    return done({ data: { reaction_id: reaction } })
  }

  async #upload(call: PlatformCall): Promise<PlatformAnswer> {
    const form = await call.form()
    const isImage = call.url.pathname.endsWith('/images')
    const file = form.get(isImage ? 'image' : 'file')
    const type = form.get(isImage ? 'image_type' : 'file_type')
    if (!(file instanceof File) || type !== (isImage ? 'message' : 'stream') || file.size === 0)
      return this.#refuse('an upload that is none', 234_001)
    const key = `${isImage ? 'img' : 'file'}_${this.#next++}`
    const name = form.get('file_name')
    this.#files.set(key, { ...(await fileOf(file)), ...(typeof name === 'string' && { name }) })
    return done({ data: isImage ? { image_key: key } : { file_key: key } })
  }
  #download(path: string, type: string | null): PlatformAnswer {
    const file = this.#files.get(path)
    if (!file) return this.#refuse('a file that is none', 234_003)
    if (type !== (file.kind === 'image' ? 'image' : 'file')) return this.#refuse('the type of a file', 234_001)
    return { status: 200, body: new Uint8Array(file.bytes), headers: { 'content-type': file.mime } }
  }
  #user(id: string): PlatformAnswer {
    if (!this.tellsNames) return refused(400, 99_991_672, 'Access denied.')
    return done({ data: { user: { open_id: id, ...(id === ADA && { name: 'Ada' }) } } })
  }
  #chat(id: string): PlatformAnswer {
    if (!this.tellsNames) return refused(400, 99_991_672, 'Access denied.')
    return done({ data: { name: id === GROUP ? 'Harbour' : '', chat_mode: id === DIRECT ? 'p2p' : 'group' } })
  }

  #violation<T>(what: string, result: T): T {
    this.violations.push(what)
    return result
  }
  #refuse(what: string, code = 230_001): PlatformAnswer {
    return this.#violation(what, refused(400, code, what))
  }
}

const done = (body: object): PlatformAnswer => ({ status: 200, body: { code: 0, msg: 'success', ...body } })
const refused = (status: number, code: number, msg: string): PlatformAnswer => ({ status, body: { code, msg } })

function encrypted(text: string): string {
  const iv = randomBytes(16)
  const cipher = createCipheriv('aes-256-cbc', createHash('sha256').update(ENCRYPT_KEY).digest(), iv)
  return Buffer.concat([iv, cipher.update(text), cipher.final()]).toString('base64')
}
