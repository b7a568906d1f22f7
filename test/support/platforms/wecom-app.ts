import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { allFaults, answerFault, fileOf } from './faults.ts'
import { resetConnection, Shown, startPlatformServer } from './http.ts'
import type { PlatformAnswer, PlatformCall, PlatformServer } from './http.ts'
import type {
  FakePlatform,
  PlatformFault,
  PlatformFile,
  PlatformInput,
  PlatformRequest,
  WebhookTarget,
} from './platform.ts'
import { sealForWeCom } from './wecom-crypto.ts'

const CORP = 'ww0123456789abcdef'
const AGENT = 1_000_002
const SECRET = 'fakeWeComAppSecret0123456789'
const TOKEN = 'fakeCallbackToken'
const AES_KEY = 'abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG'
const ADA = 'zhangsan'
const MAX_BYTES = 2048

interface Body {
  touser?: string
  agentid?: number
  msgtype?: string
  markdown?: { content?: string }
  image?: { media_id?: string }
  file?: { media_id?: string }
}
export interface CallbackOptions {
  readonly token?: string
  readonly aesKey?: string
  readonly corp?: string
  /** In seconds. */
  readonly time?: number
}

/** An application of WeCom with a callback: https://developer.work.weixin.qq.com/document/path/90238. */
export class FakeWeComApp implements FakePlatform {
  readonly channel = 'wecom'
  readonly chats = { direct: `user:${ADA}` }
  readonly person = ADA
  readonly faults = allFaults
  readonly redelivers = true
  readonly answersInJson = true
  readonly fileKinds: ReadonlySet<PlatformFile['kind']> = new Set(['image', 'audio', 'video'] as const)
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  /** Access tokens that were issued. */
  issued = 0
  /** People the application may not write to. */
  readonly unknownPeople = new Set<string>()
  readonly #shown = new Shown()
  readonly #messages = new Map<string, string>()
  readonly #files = new Map<string, PlatformFile>()
  #token = ''
  #server: PlatformServer | undefined
  #webhook: WebhookTarget | undefined
  #next = 1

  static async start(): Promise<FakeWeComApp> {
    const fake = new FakeWeComApp()
    fake.#server = await startPlatformServer((call, response) => fake.#handle(call, response))
    return fake
  }

  get config() {
    const callback = { callback_token: TOKEN, encoding_aes_key: AES_KEY }
    const base_url = this.#server?.origin ?? ''
    return { mode: 'app', corp_id: CORP, agent_id: AGENT, token: SECRET, ...callback, base_url }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrongWeComAppSecret' }
  }
  get secrets() {
    return [SECRET, TOKEN, AES_KEY, this.#token || SECRET]
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
  setWebhook(target: WebhookTarget): void {
    this.#webhook = target
  }
  revokeToken(): void {
    this.#token = ''
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }

  // Callbacks

  async deliver(input: PlatformInput): Promise<string> {
    const id = input.redeliveryOf ?? String(7_000_000_000_000_000_000n + BigInt(this.#next++))
    const [file] = input.files ?? []
    const content = file ? this.#fileContent(file) : `<MsgType><![CDATA[text]]></MsgType>${tag('Content', input.text)}`
    const xml = this.#messages.get(id) ?? this.message(`${content}<MsgId>${id}</MsgId>`)
    this.#messages.set(id, xml)
    // What the application writes does not come back.
    if (input.isOwn) return id
    const target = this.#webhook
    if (!target) throw new Error('no webhook')
    const { status } = await target(this.callback(xml))
    if (status !== 200) throw new Error(`the webhook answered ${status}`)
    return id
  }
  /** The XML of a message with this content. */
  message(content: string, agent: number = AGENT, corp = CORP): string {
    const time = 1_763_640_000 + this.#next
    const head = `${tag('ToUserName', corp)}${tag('FromUserName', ADA)}<CreateTime>${time}</CreateTime>`
    return `<xml>${head}${content}<AgentID>${agent}</AgentID></xml>`
  }
  #fileContent(file: PlatformFile): string {
    const id = `media-${this.#next++}`
    this.#files.set(id, file)
    const type = file.kind === 'audio' ? 'voice' : file.kind
    return `<MsgType><![CDATA[${type}]]></MsgType>${tag('MediaId', id)}<PicUrl><![CDATA[http://p.test/x]]></PicUrl>`
  }

  /** A callback with this XML, sealed and signed as asked. */
  callback(xml: string, options: CallbackOptions = {}): PlatformRequest {
    const { aesKey = AES_KEY, corp = CORP } = options
    return this.sealed(sealForWeCom(aesKey, xml, corp), options)
  }
  sealed(encrypted: string, { token = TOKEN, time = Math.floor(Date.now() / 1000) }: CallbackOptions = {}) {
    const body = `<xml>${tag('ToUserName', CORP)}<AgentID>${AGENT}</AgentID>${tag('Encrypt', encrypted)}</xml>`
    return {
      method: 'POST' as const,
      query: signed(encrypted, token, time),
      headers: { 'content-type': 'text/xml' } as Record<string, string>,
      body: Buffer.from(body),
    }
  }
  /** What WeCom sends when the address of the webhook is entered. */
  verifyUrl(options: CallbackOptions = {}): PlatformRequest {
    const { token = TOKEN, time = Math.floor(Date.now() / 1000), aesKey = AES_KEY, corp = CORP } = options
    const echostr = sealForWeCom(aesKey, 'prove it', corp)
    return { method: 'GET', query: { ...signed(echostr, token, time), echostr }, headers: {}, body: Buffer.alloc(0) }
  }
  forgeries(): readonly PlatformRequest[] {
    const text = `<MsgType><![CDATA[text]]></MsgType><Content>forged</Content><MsgId>1</MsgId>`
    const xml = this.message(text)
    const good = this.sealed(sealForWeCom(AES_KEY, xml, CORP))
    const other = sealForWeCom(AES_KEY, this.message(text.replace('forged', 'changed')), CORP)
    const { msg_signature: _, ...unsigned } = good.query
    return [
      { ...good, query: unsigned },
      { ...good, query: { ...good.query, msg_signature: '00' } },
      { ...good, query: { ...good.query, timestamp: '' } },
      { ...good, body: this.sealed(other).body },
      this.callback(xml, { token: 'another' }),
      this.callback(xml, { aesKey: AES_KEY.toLowerCase() }),
      this.callback(xml, { corp: 'wwanother' }),
      this.callback(xml, { time: Math.floor(Date.now() / 1000) - 600 }),
      this.sealed(Buffer.from('nonsense').toString('base64')),
      this.sealed(''),
      this.verifyUrl({ token: 'another' }),
      this.verifyUrl({ corp: 'wwanother' }),
    ]
  }

  // The API

  async #handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { pathname, searchParams } = call.url
    if (pathname === '/cgi-bin/gettoken') return this.#issue(searchParams)
    if (searchParams.get('access_token') !== this.#token || this.#token === '') return failed(42_001)
    const route = `${call.method} ${pathname}`
    if (route === 'POST /cgi-bin/message/send') return this.#send((call.json ?? {}) as Body, response)
    if (route === 'POST /cgi-bin/media/upload') return this.#upload(call)
    if (route === 'GET /cgi-bin/media/get') return this.#download(searchParams.get('media_id') ?? '')
    return this.#refuse(`the request ${route}`)
  }
  #issue(query: URLSearchParams): PlatformAnswer {
    if (query.get('corpid') !== CORP || query.get('corpsecret') !== SECRET) return failed(40_001)
    this.#token = `fake-access-token-${++this.issued}`
    return done({ access_token: this.#token, expires_in: 7200 })
  }

  #send(body: Body, response: ServerResponse): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer')
      return answerFault(fault, response, {
        rate_limit: (seconds) => ({
          ...failed(45_009),
          ...(seconds !== undefined && { headers: { 'retry-after': String(seconds) } }),
        }),
        server_error: failed(-1),
        permanent: failed(40_058),
        auth: failed(60_020),
      })
    const { touser = '', agentid, msgtype, markdown } = body
    if (agentid !== AGENT || touser === '' || touser.includes('@all')) return this.#refuse('a destination that is none')
    if (this.unknownPeople.has(touser)) return done({ invaliduser: touser, msgid: '' })
    const file = this.#files.get((msgtype === 'image' ? body.image : body.file)?.media_id ?? '')
    const text = markdown?.content ?? ''
    if (msgtype === 'markdown' ? text === '' : !file) return this.#refuse('a message that is none')
    if (Buffer.byteLength(text) > MAX_BYTES) return this.#refuse('a text that is too long')
    const id = `shown-${this.#next++}`
    this.#shown.show({ id, chatId: `user:${touser}`, text, files: file ? [file] : [], buttons: [] })
    return fault ? resetConnection(response) : done({ msgid: id })
  }
  async #upload(call: PlatformCall): Promise<PlatformAnswer> {
    const type = call.url.searchParams.get('type') ?? ''
    const file = (await call.form()).get('media')
    if (!(file instanceof File) || !['image', 'file'].includes(type)) return this.#refuse('an upload that is none')
    const id = `media-${this.#next++}`
    this.#files.set(id, await fileOf(file))
    return done({ type, media_id: id, created_at: '1763640000' })
  }
  #download(id: string): PlatformAnswer {
    const file = this.#files.get(id)
    if (!file) return failed(40_007)
    return { status: 200, body: new Uint8Array(file.bytes), headers: { 'content-type': file.mime } }
  }

  #refuse(what: string): PlatformAnswer {
    this.violations.push(what)
    return failed(40_058)
  }
}

const tag = (name: string, text: string): string => `<${name}><![CDATA[${text}]]></${name}>`
const done = (body: object): PlatformAnswer => ({ status: 200, body: { errcode: 0, errmsg: 'ok', ...body } })
const failed = (errcode: number): PlatformAnswer => ({ status: 200, body: { errcode, errmsg: `refused ${errcode}` } })

function signed(encrypted: string, token: string, time: number): Record<string, string> {
  const timestamp = String(time)
  const nonce = '1372623149'
  const content = [token, timestamp, nonce, encrypted].toSorted().join('')
  return { msg_signature: createHash('sha1').update(content).digest('hex'), timestamp, nonce }
}
