import { createHmac } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { allFaults, answerFault } from './faults.ts'
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

const APP = 'dingfakeappkey'
const SECRET = 'fakeDingTalkAppSecret0123456789'
const SESSION = 'fake-session-0123456789'
const CORP = 'dingcorp'
const ADA = 'manager1234'
const GROUP = 'cidGroup=='
const TOPIC = '/v1.0/im/bot/messages/get'
const MAX_BYTES = 20_000

interface Frame {
  readonly specVersion: '1.0'
  readonly type: string
  readonly headers: Readonly<Record<string, string>>
  readonly data: string
}
interface Body {
  robotCode?: string
  msgKey?: string
  msgParam?: string
  userIds?: string[]
  openConversationId?: string
  downloadCode?: string
  msgtype?: string
  markdown?: { title?: string; text?: string }
}
type SessionError = { readonly errcode: number; readonly errmsg: string }

export interface FakeDingTalk extends FakePlatform {
  /** Messages that were answered, by the ids of their frames. */
  readonly acknowledged: readonly string[]
  /** Access tokens that were issued. */
  readonly issued: number
  /** How messages came: by a session, or as the robot. */
  readonly ways: readonly ('session' | 'robot')[]
  /** Messages have an address for answers, which holds for so many milliseconds. */
  sessionMs: number | undefined
  /** What the next message to a session is answered with. */
  sessionError: SessionError | undefined
  /** People the robot cannot write to. */
  readonly unknownPeople: Set<string>
  /** People who get too many messages. */
  readonly limitedPeople: Set<string>
  /** The token that was issued holds no more. */
  revokeToken(): void
  /** A message with these fields. */
  emit(fields: object): Promise<void>
  /** A message of the system, such as `ping` and `disconnect`. */
  system(topic: string, data: object): void
  /** Frames that the adapter sent and that answered no message. */
  readonly systemAnswers: readonly unknown[]
  /** A request with these fields, signed as asked. */
  request(fields: object, options?: SignOptions): PlatformRequest
}
interface SignOptions {
  readonly secret?: string
  readonly time?: number
}

/** DingTalk, in Stream mode or with a webhook: https://open.dingtalk.com/document/. */
export async function startFakeDingTalk(options: { readonly webhook?: boolean } = {}): Promise<FakeDingTalk> {
  const fake = new DingTalk(options.webhook ?? false)
  const server = await startSocketServer(
    (call, response) => fake.handle(call, response),
    (peer, request) => fake.accept(peer, request.url ?? ''),
  )
  fake.origin = server.origin
  return Object.assign(fake, { [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() })
}

class DingTalk implements Omit<FakeDingTalk, typeof Symbol.asyncDispose> {
  readonly channel = 'dingtalk'
  readonly chats = { direct: `user:${ADA}`, group: GROUP }
  readonly person = ADA
  readonly faults = allFaults
  readonly redelivers = true
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  readonly acknowledged: string[] = []
  readonly systemAnswers: unknown[] = []
  readonly ways: ('session' | 'robot')[] = []
  readonly unknownPeople = new Set<string>()
  readonly limitedPeople = new Set<string>()
  readonly disconnect?: () => Promise<void>
  readonly waitForListener?: () => Promise<void>
  readonly forgeries?: () => readonly PlatformRequest[]
  origin = ''
  issued = 0
  sessionMs: number | undefined
  sessionError: SessionError | undefined
  readonly #isWebhook: boolean
  readonly #shown = new Shown()
  readonly #messages = new Map<string, object>()
  readonly #files = new Map<string, PlatformFile>()
  readonly #tickets = new Set<string>()
  readonly #waiting: Frame[] = []
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
    const base = { app_key: APP, token: SECRET, base_url: this.origin }
    return this.#isWebhook ? { ...base, mode: 'webhook' } : base
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrongDingTalkAppSecret' }
  }
  get secrets() {
    return [SECRET, SESSION, this.#token || SECRET]
  }
  get sent() {
    return this.#shown.sent
  }
  waitForSent = (count: number) => this.#shown.waitForSent(count)
  fail = (fault: PlatformFault) => this.#shown.fail(fault)
  setWebhook = (target: WebhookTarget) => {
    this.#webhook = target
  }
  revokeToken(): void {
    this.#token = ''
  }

  // Messages to the robot

  async deliver(input: PlatformInput): Promise<string> {
    const id = input.redeliveryOf ?? `msg${this.#next++}==`
    const message = this.#messages.get(id) ?? this.#messageOf(input, id)
    this.#messages.set(id, message)
    await this.#push(message)
    return id
  }
  emit = (fields: object) => this.#push({ ...this.#messageOf({ text: 'x' }, `msg${this.#next++}==`), ...fields })

  #messageOf(input: PlatformInput, id: string): object {
    const [file] = input.files ?? []
    const isGroup = input.isGroup === true
    return {
      msgId: id,
      createAt: 1_763_640_000_000 + this.#next,
      conversationType: isGroup ? '2' : '1',
      conversationId: isGroup ? GROUP : 'cidDirect==',
      ...(isGroup && { conversationTitle: 'Harbour', isInAtList: input.mentionsBot === true }),
      chatbotCorpId: CORP,
      chatbotUserId: '$:LWCP_v1:$bot',
      robotCode: APP,
      senderId: input.isOwn ? '$:LWCP_v1:$bot' : '$:LWCP_v1:$ada',
      senderStaffId: ADA,
      senderNick: 'Ada',
      senderCorpId: CORP,
      isAdmin: false,
      ...(this.sessionMs !== undefined && {
        sessionWebhook: `${this.origin}/robot/sendBySession?session=${SESSION}`,
        sessionWebhookExpiredTime: Date.now() + this.sessionMs,
      }),
      ...(file ? this.#fileContent(file) : { msgtype: 'text', text: { content: ` ${input.text}` } }),
    }
  }
  #fileContent(file: PlatformFile) {
    const code = `code-${this.#next++}`
    this.#files.set(code, file)
    if (file.kind === 'image') return { msgtype: 'picture', content: { downloadCode: code, pictureDownloadCode: 'x' } }
    return { msgtype: 'file', content: { downloadCode: code, fileName: file.name, spaceId: '1', fileId: '2' } }
  }

  async #push(message: object): Promise<void> {
    if (!this.#isWebhook) {
      const headers = { appId: 'app', connectionId: 'c', contentType: 'application/json', topic: TOPIC }
      const messageId = `frame-${this.#next++}`
      const frame: Frame = {
        specVersion: '1.0',
        type: 'CALLBACK',
        headers: { ...headers, messageId, time: '1763640000000' },
        data: JSON.stringify(message),
      }
      this.#waiting.push(frame)
      this.#listener.value?.send(frame)
      return
    }
    const target = this.#webhook
    if (!target) throw new Error('no webhook')
    const { status } = await target(this.request(message))
    if (status !== 200) throw new Error(`the webhook answered ${status}`)
  }

  request(fields: object, { secret = SECRET, time = Date.now() }: SignOptions = {}) {
    const sign = createHmac('sha256', secret).update(`${time}\n${secret}`).digest('base64')
    return {
      method: 'POST' as const,
      headers: { 'content-type': 'application/json; charset=utf-8', timestamp: String(time), sign } as Record<
        string,
        string
      >,
      body: Buffer.from(JSON.stringify(fields)),
    }
  }
  #forgeries(): readonly PlatformRequest[] {
    const message = this.#messageOf({ text: 'forged' }, 'msgForged==')
    const good = this.request(message)
    const { sign: _, ...unsigned } = good.headers
    return [
      { ...good, headers: unsigned },
      { ...good, headers: { ...good.headers, sign: 'AAAA' } },
      { ...good, headers: { ...good.headers, timestamp: String(Date.now() + 1) } },
      { ...good, headers: { ...good.headers, timestamp: '' } },
      this.request(message, { secret: 'another' }),
      this.request(message, { time: Date.now() - 3_700_000 }),
    ]
  }

  // Stream mode

  accept(peer: Peer, url: string): PeerHandlers | number {
    if (!this.#tickets.delete(new URL(url, this.origin).searchParams.get('ticket') ?? '')) {
      this.violations.push('a connection without a ticket, or with a used one')
      return 4001
    }
    this.#listener.set(peer)
    for (const frame of this.#waiting) peer.send(frame)
    return { frame: (frame) => this.#answered(frame), closed: () => this.#listener.remove(peer) }
  }
  system(topic: string, data: object): void {
    const headers = { topic, messageId: `system-${this.#next++}`, contentType: 'application/json' }
    this.#listener.value?.send({ specVersion: '1.0', type: 'SYSTEM', headers, data: JSON.stringify(data) })
  }
  #answered(raw: unknown): void {
    const { code, headers, message, data } = (raw ?? {}) as {
      code?: number
      headers?: Record<string, string>
      message?: string
      data?: unknown
    }
    const id = headers?.['messageId'] ?? ''
    if (typeof data !== 'string' || message !== 'OK') this.violations.push('an answer in another form')
    if (id.startsWith('system-')) {
      this.systemAnswers.push(raw)
      return
    }
    const index = this.#waiting.findIndex((frame) => frame.headers['messageId'] === id)
    if (code !== 200 || index === -1) {
      this.violations.push('an answer to nothing')
      return
    }
    this.#waiting.splice(index, 1)
    this.acknowledged.push(id)
  }

  // The API

  async handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { pathname, searchParams } = call.url
    const body = (call.json ?? {}) as Body
    if (pathname === '/robot/sendBySession') return this.#bySession(body, searchParams.get('session'), call)
    const stored = this.#files.get(/^\/stored\/(.+)$/.exec(pathname)?.[1] ?? '')
    if (stored) return this.#download(call, stored)
    if (call.method !== 'POST') return this.#refuse(`the request ${call.method} ${pathname}`)
    if (pathname === '/v1.0/oauth2/accessToken') return this.#issue(call)
    if (pathname === '/v1.0/gateway/connections/open') return this.#open(call)
    if (call.headers['x-acs-dingtalk-access-token'] !== this.#token || this.#token === '')
      return refused(400, 'InvalidAuthentication', '不合法的access_token')
    if (body.robotCode !== APP) return this.#refuse('a robot that is none', 'invalidParameter.robotCode')
    if (pathname === '/v1.0/robot/oToMessages/batchSend') return this.#send(body, call, response)
    if (pathname === '/v1.0/robot/groupMessages/send') return this.#send(body, call, response)
    if (pathname === '/v1.0/robot/messageFiles/download') return this.#address(body.downloadCode ?? '')
    return this.#refuse(`the request ${pathname}`)
  }

  #issue({ json }: PlatformCall): PlatformAnswer {
    const { appKey, appSecret } = (json ?? {}) as { appKey?: string; appSecret?: string }
    if (appKey !== APP || appSecret !== SECRET)
      return refused(400, 'invalidClientIdOrSecret', '无效的clientId或者clientSecret')
    this.#token = `fake-access-token-${++this.issued}`
    return { status: 200, body: { accessToken: this.#token, expireIn: 7200 } }
  }
  #open({ json }: PlatformCall): PlatformAnswer {
    const { clientId, clientSecret, subscriptions } = (json ?? {}) as {
      clientId?: string
      clientSecret?: string
      subscriptions?: { type?: string; topic?: string }[]
    }
    if (clientId !== APP || clientSecret !== SECRET) return refused(401, 'authFailed', '鉴权失败')
    if (!subscriptions?.some(({ type, topic }) => type === 'CALLBACK' && topic === TOPIC))
      return this.#refuse('a connection without the topic')
    const ticket = `${this.#next++}+/ =&`
    this.#tickets.add(ticket)
    return { status: 200, body: { endpoint: `${this.origin.replace('http', 'ws')}/connect`, ticket } }
  }

  #send(body: Body, call: PlatformCall, response: ServerResponse): PlatformAnswer | undefined {
    const { userIds, openConversationId } = body
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer')
      return answerFault(fault, response, {
        rate_limit: (seconds) => ({
          ...refused(403, 'Forbidden.AccessDenied.QpsLimitForApi', '请求过于频繁'),
          ...(seconds !== undefined && { headers: { 'retry-after': String(seconds) } }),
        }),
        server_error: refused(500, 'ServiceUnavailable', 'The request has failed due to a temporary failure.'),
        permanent: refused(400, 'robot.not.exist', '机器人不存在'),
        auth: refused(400, 'invalidClientIdOrSecret', '无效的clientId或者clientSecret'),
      })
    const isDirect = call.url.pathname.includes('oToMessages')
    const [person = ''] = userIds ?? []
    if (isDirect ? userIds?.length !== 1 : openConversationId !== GROUP)
      return this.#refuse('a destination that is none')
    const { title = '', text = '' } = JSON.parse(body.msgParam ?? '{}') as { title?: string; text?: string }
    if (body.msgKey !== 'sampleMarkdown' || !this.#isMarkdown(title, text, call))
      return this.#refuse('a message that is none')
    const lists = {
      invalidStaffIdList: [person].filter((id) => this.unknownPeople.has(id)),
      flowControlledStaffIdList: [person].filter((id) => this.limitedPeople.has(id)),
    }
    const processQueryKey = `key-${this.#next++}`
    if (lists.invalidStaffIdList.length + lists.flowControlledStaffIdList.length === 0)
      this.#show(processQueryKey, isDirect ? `user:${person}` : GROUP, text, 'robot')
    return fault ? resetConnection(response) : { status: 200, body: { processQueryKey, ...(isDirect && lists) } }
  }

  /** A session answers with status 200 whatever happens. */
  #bySession(body: Body, session: string | null, call: PlatformCall): PlatformAnswer {
    const error = this.sessionError
    this.sessionError = undefined
    if (error) return { status: 200, body: error }
    if (call.headers['x-acs-dingtalk-access-token'] !== undefined) this.violations.push('a token for a session')
    if (session !== SESSION) return { status: 200, body: { errcode: 300_001, errmsg: 'session 不存在' } }
    const { title = '', text = '' } = body.markdown ?? {}
    if (body.msgtype !== 'markdown' || !this.#isMarkdown(title, text, call))
      return this.#refuse('a message to a session that is none')
    this.#show(`session-${this.#next++}`, this.chats.direct, text, 'session')
    return { status: 200, body: { errcode: 0, errmsg: 'ok' } }
  }
  #isMarkdown(title: string, text: string, { bytes }: PlatformCall): boolean {
    return title !== '' && text !== '' && bytes.length <= MAX_BYTES
  }
  #show(id: string, chatId: string, text: string, way: 'session' | 'robot'): void {
    this.ways.push(way)
    this.#shown.show({ id, chatId, text, files: [], buttons: [] })
  }

  #address(code: string): PlatformAnswer {
    if (!this.#files.has(code)) return refused(400, 'invalidParameter.downloadCode', 'downloadCode有误或已过期')
    return { status: 200, body: { downloadUrl: `${this.origin}/stored/${code}` } }
  }
  #download({ headers }: PlatformCall, file: PlatformFile): PlatformAnswer {
    if (headers['x-acs-dingtalk-access-token'] !== undefined) this.violations.push('the token was sent to the store')
    return { status: 200, body: new Uint8Array(file.bytes), headers: { 'content-type': file.mime } }
  }

  #refuse(what: string, code = 'invalidParameter'): PlatformAnswer {
    this.violations.push(what)
    return refused(400, code, what)
  }
}

const refused = (status: number, code: string, message: string): PlatformAnswer => ({
  status,
  body: { code, message, requestid: 'R-1' },
})
