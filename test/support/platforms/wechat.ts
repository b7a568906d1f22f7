import { createHash, randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { ecb } from '@noble/ciphers/aes.js'
import { allFaults } from './faults.ts'
import { resetConnection, Shown, startPlatformServer } from './http.ts'
import type { PlatformAnswer, PlatformCall, PlatformServer } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformFile, PlatformInput } from './platform.ts'
import { Presence } from './sockets.ts'

const TOKEN = 'd41d8cd98f00b204:bot-token-of-the-test'
const BOT = '8d8d8d@im.bot'
const PERSON = 'o9cq80ada@im.wechat'
const TICKET = Buffer.from('typing ticket').toString('base64')
const EXPIRED = { status: 200, body: { ret: -14, errcode: -14, errmsg: 'session timeout' } }
const OK = { status: 200, body: { ret: 0, errmsg: '' } }

interface Message {
  readonly seq: number
  readonly message_id: number
  readonly from_user_id: string
  readonly [field: string]: unknown
}
interface Item {
  readonly type: number
  readonly text_item?: { readonly text: string }
  readonly image_item?: { readonly media: Media; readonly mid_size: number }
  readonly file_item?: { readonly media: Media; readonly file_name: string; readonly len: string }
}
interface Media {
  readonly encrypt_query_param: string
  readonly aes_key: string
}
interface Sent {
  readonly to_user_id: string
  readonly client_id: string
  readonly message_type: number
  readonly message_state: number
  readonly context_token?: string
  readonly item_list: readonly Item[]
}
interface Body {
  readonly get_updates_buf: string
  readonly msg: Sent
  readonly [field: string]: unknown
}
interface Upload {
  readonly rawsize: number
  readonly rawfilemd5: string
  readonly filesize: number
  readonly aeskey: string
}

/**
 * The API of Tencent for bots of an account: docs/protocol.md of https://github.com/Tencent/openclaw-weixin. Files are
 * encrypted by @noble, another implementation than that of the adapter.
 */
export class FakeWeChat implements FakePlatform {
  readonly channel = 'wechat'
  readonly secrets = [TOKEN]
  readonly chats = { direct: PERSON }
  readonly person = PERSON
  readonly redelivers = true
  readonly answersInJson = true
  /** It does not say how it refuses too many messages. */
  readonly faults: ReadonlySet<PlatformFault['kind']> = allFaults.difference(new Set(['rate_limit'] as const))
  readonly typing: string[] = []
  readonly reactions = []
  readonly violations: string[] = []
  /** What the polls of the QR code are answered with, one after another; the last one stays. */
  readonly codeStates: object[] = []
  /** The codes that were given out. */
  readonly codes: string[] = []
  readonly #shown = new Shown()
  readonly #messages: Message[] = []
  readonly #files = new Map<string, Uint8Array>()
  readonly #uploads = new Map<string, Upload>()
  readonly #polls = new Presence<{ readonly cursor: number; readonly response: ServerResponse }>()
  #server: PlatformServer | undefined
  #context: string | undefined
  #next = 1
  #isExpired = false

  static async start(): Promise<FakeWeChat> {
    const fake = new FakeWeChat()
    fake.#server = await startPlatformServer((call, response) => fake.#handle(call, response))
    return fake
  }

  get origin(): string {
    return this.#server?.origin ?? ''
  }
  get config() {
    return { mode: 'bot', token: TOKEN, base_url: this.origin, cdn_url: `${this.origin}/c2c` }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrong' }
  }
  /** What a phone that confirms gives. */
  get confirmed() {
    return { status: 'confirmed', bot_token: TOKEN, ilink_bot_id: BOT, baseurl: this.origin, ilink_user_id: PERSON }
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
  setWebhook(): void {}
  async waitForListener(): Promise<void> {
    await this.#polls.wait()
  }
  async disconnect(): Promise<void> {
    const { response } = await this.#polls.wait()
    this.#polls.set(undefined)
    resetConnection(response)
  }
  /** The session ends, as when the bot is removed on the phone. */
  async expire(): Promise<void> {
    this.#isExpired = true
    const { response } = await this.#polls.wait()
    this.#polls.set(undefined)
    answer(response, EXPIRED.body)
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const known = this.#messages.find(({ message_id: id }) => String(id) === input.redeliveryOf)
    const id = known?.message_id ?? 7_000_000 + this.#next++
    return this.deliverRaw({ ...(known ?? this.#messageOf(input)), message_id: id })
  }
  /** Delivers anything. */
  deliverRaw(message: object): string {
    const whole = { ...message, seq: this.#messages.length + 1 } as Message
    this.#messages.push(whole)
    const poll = this.#polls.value
    this.#polls.set(undefined)
    if (poll) answer(poll.response, this.#updatesAfter(poll.cursor))
    return String(whole.message_id)
  }

  #messageOf({ text, isOwn, files = [] }: PlatformInput) {
    this.#context = `context ${this.#next++}`
    const [file] = files
    const items = text === '' ? [] : [{ type: 1, text_item: { text } }]
    return {
      from_user_id: isOwn ? BOT : PERSON,
      to_user_id: isOwn ? PERSON : BOT,
      message_type: isOwn ? 2 : 1,
      create_time_ms: Date.now(),
      context_token: this.#context,
      item_list: file ? [...items, this.#itemOf(file)] : items,
    }
  }
  #itemOf({ kind, name, bytes }: PlatformFile): object {
    const key = randomBytes(16)
    const param = `param/${this.#next++}`
    this.#files.set(param, ecb(key).encrypt(new Uint8Array(bytes)))
    if (kind === 'image')
      return { type: 2, image_item: { media: { encrypt_query_param: param }, aeskey: key.toString('hex') } }
    // The digits of the key in base64, as for files.
    const aes_key = Buffer.from(key.toString('hex')).toString('base64')
    const media = { encrypt_query_param: param, aes_key, encrypt_type: 1 }
    return { type: 4, file_item: { media, file_name: name, len: String(bytes.length) } }
  }

  async #handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { pathname, searchParams } = call.url
    if (pathname.startsWith('/c2c/')) return this.#handleFile(call)
    if (call.headers['ilink-app-id'] !== 'bot') return this.#violation('the header iLink-App-Id')
    if (pathname === '/ilink/bot/get_bot_qrcode') return this.#code(call)
    if (pathname === '/ilink/bot/get_qrcode_status') return this.#codeState(searchParams.get('qrcode'))
    const problem = problemOfHeaders(call)
    if (problem !== undefined) return this.#violation(problem)
    if (call.headers.authorization !== `Bearer ${TOKEN}` || this.#isExpired) return EXPIRED
    const body = call.json as Body
    const name = pathname.slice('/ilink/bot/'.length)
    if (name === 'msg/notifystart') return OK
    if (name === 'getupdates') return this.#update(body.get_updates_buf, response)
    if (name === 'sendmessage') return this.#take(body.msg, response)
    if (name === 'getconfig') return { status: 200, body: { ret: 0, typing_ticket: TICKET } }
    if (name === 'sendtyping') return this.#type(body)
    if (name === 'getuploadurl') return this.#startUpload(body)
    return this.#violation(`no such path: ${pathname}`)
  }

  #code({ url, json }: PlatformCall): PlatformAnswer {
    if (url.searchParams.get('bot_type') !== '3' || !Array.isArray(Object(json)['local_token_list']))
      return this.#violation('the request of a QR code')
    const qrcode = `code-${this.codes.length + 1}`
    this.codes.push(qrcode)
    return { status: 200, body: { qrcode, qrcode_img_content: `https://liteapp.weixin.qq.com/q/${qrcode}` } }
  }
  #codeState(code: string | null): PlatformAnswer {
    if (code !== this.codes.at(-1)) return this.#violation('the state of another QR code')
    const body = this.codeStates.length > 1 ? this.codeStates.shift() : this.codeStates[0]
    return { status: 200, body: body ?? { status: 'wait' } }
  }

  #update(cursor: string, response: ServerResponse): PlatformAnswer | undefined {
    const position = Number(cursor.replace('position-', ''))
    if (position < this.#messages.length) return { status: 200, body: this.#updatesAfter(position) }
    this.#polls.set({ cursor: position, response })
    response.on('close', () => {
      if (this.#polls.value?.response === response) this.#polls.set(undefined)
    })
    return undefined
  }
  #updatesAfter(cursor: number): object {
    const get_updates_buf = `position-${this.#messages.length}`
    return { ret: 0, msgs: this.#messages.slice(cursor), get_updates_buf, longpolling_timeout_ms: 35_000 }
  }

  #type({ ilink_user_id: user, typing_ticket: ticket, status }: Record<string, unknown>): PlatformAnswer {
    if (ticket !== TICKET || status !== 1) return this.#violation('the ticket or the state of the typing indicator')
    this.typing.push(String(user))
    return OK
  }

  #take(message: Sent, response: ServerResponse): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault?.kind === 'reset') return resetConnection(response)
    if (fault?.kind === 'server_error') return { status: 500 }
    if (fault?.kind === 'permanent') return { status: 400 }
    if (fault?.kind === 'auth') return EXPIRED
    const [item, ...more] = message.item_list
    if (!item || more.length > 0) return this.#violation('a message has one item')
    if (message.message_type !== 2 || message.message_state !== 2) return this.#violation('the kind of the message')
    if (message.to_user_id !== PERSON || !message.client_id) return this.#violation('the ids of the message')
    if (message.context_token !== this.#context) return this.#violation('the context of the message')
    const file = this.#fileOf(item)
    const text = item.text_item?.text ?? ''
    if (text === '' && !file) return this.#violation('an empty message')
    const files = file ? [file] : []
    this.#shown.show({ id: message.client_id, chatId: message.to_user_id, text, files, buttons: [] })
    return fault ? resetConnection(response) : OK
  }
  #fileOf({ image_item: image, file_item: file }: Item): PlatformFile | undefined {
    const media = image?.media ?? file?.media
    const encrypted = this.#files.get(media?.encrypt_query_param ?? '')
    if (!media || !encrypted) return undefined
    const key = Buffer.from(Buffer.from(media.aes_key, 'base64').toString(), 'hex')
    const bytes = ecb(key).decrypt(encrypted)
    if (image && image.mid_size !== encrypted.length) this.violations.push('the size of a picture')
    if (file && file.len !== String(bytes.length)) this.violations.push('the size of a file')
    // Pictures have no names: the one of the suite is assumed.
    return { kind: 'file', name: file?.file_name ?? 'dot.png', mime: 'application/octet-stream', bytes }
  }

  #startUpload(body: Record<string, unknown>): PlatformAnswer {
    const { filekey, media_type: type, to_user_id: to, no_need_thumb: noThumb } = body
    if (![1, 2, 3].includes(Number(type)) || to !== PERSON || noThumb !== true) return this.#violation('an upload')
    this.#uploads.set(String(filekey), body as unknown as Upload)
    return { status: 200, body: { ret: 0, upload_param: `upload ${String(filekey)}` } }
  }
  #handleFile({ method, url, headers, bytes }: PlatformCall): PlatformAnswer {
    if (headers.authorization !== undefined) return this.#violation('the token for the host of files')
    const param = url.searchParams.get('encrypted_query_param') ?? ''
    if (method === 'GET') {
      const file = this.#files.get(param)
      return file ? { status: 200, body: file } : { status: 404 }
    }
    const fileKey = url.searchParams.get('filekey') ?? ''
    const upload = this.#uploads.get(fileKey)
    if (!upload || param !== `upload ${fileKey}`) return this.#violation('an upload that was not announced')
    const plain = ecb(Buffer.from(upload.aeskey, 'hex')).decrypt(bytes)
    const md5 = createHash('md5').update(plain).digest('hex')
    if (upload.filesize !== bytes.length || upload.rawsize !== plain.length || upload.rawfilemd5 !== md5)
      return this.#violation('the upload is not what was announced')
    const download = `param/${this.#next++}`
    this.#files.set(download, bytes)
    return { status: 200, headers: { 'x-encrypted-param': download } }
  }

  #violation(what: string): PlatformAnswer {
    this.violations.push(what)
    return { status: 400, body: { ret: -1, errmsg: what } }
  }
}

function problemOfHeaders({ method, headers, json }: PlatformCall): string | undefined {
  if (method !== 'POST' || headers['authorizationtype'] !== 'ilink_bot_token') return 'the header AuthorizationType'
  const uin = Buffer.from(String(headers['x-wechat-uin']), 'base64').toString()
  if (!/^\d{1,10}$/.test(uin) || Number(uin) >= 2 ** 32) return 'the header X-WECHAT-UIN'
  return Object(json)['base_info']?.channel_version ? undefined : 'base_info.channel_version'
}

function answer(response: ServerResponse, body: object): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
