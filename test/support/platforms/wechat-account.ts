import { createHash, randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { encrypt, getSignature } from '@wecom/crypto'
import { allFaults } from './faults.ts'
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

const APP_ID = 'wx5823bf96d3bd56c7'
const APP_SECRET = 'app-secret-0123456789abcdef01234'
const WEBHOOK_TOKEN = 'QDG6eK'
const AES_KEY = 'jWmYm7qr5nMoAUwZRjGtBxmz3KA1tkAj3ykkR6q2B2C'
const ACCOUNT = 'gh_7f083739789a'
const PERSON = 'oia2TjjewbmiOUlr6X1ada'
const MAX_TEXT_BYTES = 2048

interface Body {
  readonly touser: string
  readonly msgtype?: string
  readonly command?: string
  readonly text?: { readonly content: string }
  readonly image?: { readonly media_id: string }
}
const refuse = (errcode: number, errmsg: string): PlatformAnswer => ({ status: 200, body: { errcode, errmsg } })
const OK = refuse(0, 'ok')

/**
 * An official account in the safe mode: https://developers.weixin.qq.com/doc/offiaccount/. Its messages are encrypted
 * and signed by @wecom/crypto, which has the same scheme.
 */
export class FakeWeChatAccount implements FakePlatform {
  readonly channel = 'wechat'
  readonly secrets = [APP_SECRET, WEBHOOK_TOKEN, AES_KEY]
  readonly chats = { direct: PERSON }
  readonly person = PERSON
  readonly redelivers = true
  readonly answersInJson = true
  /** Its limits come without a pause. */
  readonly faults: ReadonlySet<PlatformFault['kind']> = allFaults.difference(new Set(['rate_limit'] as const))
  readonly typing: string[] = []
  readonly reactions = []
  readonly violations: string[] = []
  /** The tokens that were given out. */
  readonly tokens: string[] = []
  readonly #shown = new Shown()
  readonly #messages = new Map<string, string>()
  readonly #files = new Map<string, PlatformFile>()
  #server: PlatformServer | undefined
  #target: WebhookTarget | undefined
  #error: PlatformAnswer | undefined
  #next = 1

  static async start(): Promise<FakeWeChatAccount> {
    const fake = new FakeWeChatAccount()
    fake.#server = await startPlatformServer((call, response) => fake.#handle(call, response))
    return fake
  }

  get config() {
    return {
      mode: 'official_account',
      token: APP_SECRET,
      app_id: APP_ID,
      webhook_token: WEBHOOK_TOKEN,
      aes_key: AES_KEY,
      base_url: this.#server?.origin ?? '',
    }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrong' }
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
  /** The next message is refused with this number. */
  refuseNext(errcode: number): void {
    this.#error = refuse(errcode, 'refused')
  }
  /** The token is replaced, as by another program with the same account. */
  replaceToken(): void {
    this.tokens.push(`token-${this.#next++}-${randomBytes(4).toString('hex')}`)
  }
  setWebhook(target: WebhookTarget): void {
    this.#target = target
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const id = input.redeliveryOf ?? `64921870129${10_000_000 + this.#next++}`
    // What the account sends does not come back; events come the same way.
    const content = input.isOwn ? '<MsgType><![CDATA[event]]></MsgType><Event><![CDATA[VIEW]]></Event>' : undefined
    const xml = content ?? this.#messages.get(id) ?? this.#contentOf(input, id)
    this.#messages.set(id, xml)
    const answer = await this.#target?.(this.signed(this.messageOf(xml)))
    if (answer?.status !== 200 || answer.body !== 'success') throw new Error(`the webhook answered ${answer?.status}`)
    return id
  }
  messageOf(content: string): string {
    const time = Math.floor(Date.now() / 1000)
    const head = `<ToUserName><![CDATA[${ACCOUNT}]]></ToUserName><FromUserName><![CDATA[${PERSON}]]></FromUserName>`
    return `<xml>${head}<CreateTime>${time}</CreateTime>${content}</xml>`
  }
  /** A request that WeChat encrypted and signed. */
  signed(xml: string, more: { token?: string; appId?: string; key?: string; time?: number } = {}): PlatformRequest {
    const { token = WEBHOOK_TOKEN, appId = APP_ID, key = AES_KEY, time = Math.floor(Date.now() / 1000) } = more
    const timestamp = String(time)
    const nonce = String(this.#next++)
    const encrypted = encrypt(key, xml, appId)
    const query = {
      timestamp,
      nonce,
      openid: PERSON,
      encrypt_type: 'aes',
      signature: sha1(token, timestamp, nonce),
      msg_signature: getSignature(token, timestamp, nonce, encrypted),
    }
    const to = `<ToUserName><![CDATA[${ACCOUNT}]]></ToUserName>`
    const body = Buffer.from(`<xml>${to}<Encrypt><![CDATA[${encrypted}]]></Encrypt></xml>`)
    return { method: 'POST', query, headers: { 'content-type': 'text/xml' }, body }
  }
  /** The request with which WeChat checks the address. */
  handshake(token = WEBHOOK_TOKEN): PlatformRequest {
    const timestamp = String(Math.floor(Date.now() / 1000))
    const query = { timestamp, nonce: '7', signature: sha1(token, timestamp, '7'), echostr: '4375120948345356249' }
    return { method: 'GET', query, headers: {}, body: new Uint8Array() }
  }
  forgeries(): readonly PlatformRequest[] {
    const clear = this.messageOf(text('forged', '1'))
    const good = this.signed(clear)
    const { msg_signature: _, ...unsigned } = good.query ?? {}
    const other = this.signed(this.messageOf(text('another', '2')))
    return [
      { ...good, query: unsigned },
      { ...good, body: other.body },
      // The signature of the query does not cover a message in clear text.
      { ...good, body: Buffer.from(clear) },
      this.signed(clear, { token: 'another' }),
      this.signed(clear, { time: Math.floor(Date.now() / 1000) - 3600 }),
      this.handshake('another'),
    ]
  }

  #contentOf({ text: written, files = [] }: PlatformInput, id: string): string {
    const [file] = files
    if (!file) return text(written, id)
    const media = `media-${this.#next++}`
    this.#files.set(media, file)
    const type = file.kind === 'file' ? 'voice' : file.kind
    const format = type === 'voice' ? '<Format><![CDATA[amr]]></Format>' : ''
    return `<MsgType><![CDATA[${type}]]></MsgType><MediaId><![CDATA[${media}]]></MediaId>${format}<MsgId>${id}</MsgId>`
  }

  async #handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { method, url } = call
    if (url.pathname.startsWith('/video/')) return this.#readVideo(url)
    const path = url.pathname.slice('/cgi-bin/'.length)
    if (method === 'POST' && path === 'stable_token') return this.#giveToken(call.json)
    if (url.searchParams.get('access_token') !== this.tokens.at(-1)) return refuse(40_001, 'invalid credential')
    if (method === 'GET' && path === 'media/get') return this.#readFile(url.searchParams.get('media_id'))
    if (method === 'POST' && path === 'media/upload') return this.#upload(await call.form())
    const body = call.json as Body
    if (path === 'message/custom/typing' && body.command === 'Typing') {
      this.typing.push(body.touser)
      return OK
    }
    return path === 'message/custom/send' ? this.#take(body, response) : this.#violation(path)
  }

  #giveToken(body: unknown): PlatformAnswer {
    const { grant_type: type, appid, secret } = Object(body) as Record<string, unknown>
    if (type !== 'client_credential' || appid !== APP_ID) return refuse(40_013, 'invalid appid')
    if (secret !== APP_SECRET) return refuse(40_125, 'invalid appsecret')
    if (this.tokens.length === 0) this.replaceToken()
    return { status: 200, body: { access_token: this.tokens.at(-1), expires_in: 7200 } }
  }

  #readFile(media: string | null): PlatformAnswer {
    const file = this.#files.get(media ?? '')
    if (!file) return refuse(40_007, 'invalid media_id')
    if (file.kind === 'video') return { status: 200, body: { video_url: `${this.#server?.origin}/video/${media}` } }
    return {
      status: 200,
      body: file.bytes,
      headers: { 'content-type': file.mime === 'text/plain' ? 'audio/amr' : file.mime },
    }
  }
  #readVideo({ pathname, searchParams }: URL): PlatformAnswer {
    if (searchParams.has('access_token')) return this.#violation('the token for the host of a video')
    const file = this.#files.get(pathname.slice('/video/'.length))
    return file ? { status: 200, body: file.bytes, headers: { 'content-type': file.mime } } : { status: 404 }
  }
  async #upload(form: FormData): Promise<PlatformAnswer> {
    const file = form.get('media')
    if (!(file instanceof File) || !file.type.startsWith('image/'))
      return this.#violation('an upload without a picture')
    const media = `media-${this.#next++}`
    this.#files.set(media, { kind: 'image', name: file.name, mime: file.type, bytes: await file.bytes() })
    return { status: 200, body: { type: 'image', media_id: media, created_at: 1 } }
  }

  #take(body: Body, response: ServerResponse): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    const error = this.#error ?? refusalOf(fault)
    this.#error = undefined
    if (fault?.kind === 'reset') return resetConnection(response)
    if (error) return error
    const { touser, msgtype } = body
    const written = body.text?.content
    if (touser !== PERSON || (msgtype !== 'text' && msgtype !== 'image')) return this.#violation('a message')
    if (msgtype === 'text' && (!written || Buffer.byteLength(written) > MAX_TEXT_BYTES))
      return this.#violation('a text')
    const file = this.#files.get(body.image?.media_id ?? '')
    const files = file ? [file] : []
    this.#shown.show({ id: '', chatId: touser, text: written ?? '', files, buttons: [] })
    return fault ? resetConnection(response) : OK
  }

  #violation(what: string): PlatformAnswer {
    this.violations.push(what)
    return refuse(47_001, what)
  }
}

const text = (content: string, id: string): string =>
  `<MsgType><![CDATA[text]]></MsgType><Content><![CDATA[${content}]]></Content><MsgId>${id}</MsgId>`

function sha1(...texts: readonly string[]): string {
  return createHash('sha1').update(texts.toSorted().join('')).digest('hex')
}

function refusalOf(fault: PlatformFault | undefined): PlatformAnswer | undefined {
  if (fault?.kind === 'server_error') return refuse(-1, 'system error')
  if (fault?.kind === 'permanent') return refuse(45_015, 'response out of time limit or subscription is canceled')
  return fault?.kind === 'auth' ? refuse(48_001, 'api unauthorized') : undefined
}
