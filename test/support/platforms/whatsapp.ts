import { createHmac } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { allFaults, Revocation } from './faults.ts'
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

const TOKEN = 'EAAGm0PX4ZCpsBAKZCtoken'
const PHONE = '106540352242922'
const VERIFY = 'verify-token-of-the-test'
const APP_SECRET = 'app-secret-0123456789abcdef'
const PERSON = '16505551234'
const error = (status: number, code: number, message: string, headers = {}): PlatformAnswer => ({
  status,
  headers,
  body: { error: { message: `(#${code}) ${message}`, type: 'OAuthException', code, fbtrace_id: 'Az8or2yhqkZfEZ' } },
})

interface SentBody {
  readonly messaging_product?: string
  readonly recipient_type?: string
  readonly to?: string
  readonly type?: string
  readonly context?: { readonly message_id: string }
  readonly text?: { readonly body: string }
  readonly reaction?: { readonly message_id: string; readonly emoji: string }
  readonly interactive?: {
    readonly body: { readonly text: string }
    readonly action: {
      readonly buttons?: readonly { readonly reply: { readonly id: string; readonly title: string } }[]
      readonly sections?: readonly { readonly rows: readonly { readonly id: string; readonly title: string }[] }[]
    }
  }
  readonly status?: string
  readonly message_id?: string
  readonly [media: string]: unknown
}

/** The Cloud API of WhatsApp: https://developers.facebook.com/docs/whatsapp/cloud-api */
export class FakeWhatsApp implements FakePlatform {
  readonly channel = 'whatsapp'
  readonly secrets = [TOKEN, APP_SECRET, VERIFY]
  readonly chats = { direct: PERSON }
  readonly person = PERSON
  readonly redelivers = true
  readonly revocation = new Revocation()
  readonly faults = allFaults
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  readonly #shown = new Shown()
  readonly #server: PlatformServer
  readonly #files = new Map<string, PlatformFile>()
  readonly #messages = new Map<string, unknown>()
  #target: WebhookTarget | undefined
  #next = 1

  private constructor(server: PlatformServer) {
    this.#server = server
  }
  static async start(): Promise<FakeWhatsApp> {
    const held: { fake?: FakeWhatsApp } = {}
    const server = await startPlatformServer((call, response) => held.fake?.handle(call, response))
    held.fake = new FakeWhatsApp(server)
    return held.fake
  }

  get config() {
    return {
      token: TOKEN,
      phone_number_id: PHONE,
      verify_token: VERIFY,
      app_secret: APP_SECRET,
      base_url: this.#server.origin,
    }
  }
  get wrongConfig() {
    return { ...this.config, token: 'EAAwrong' }
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
    this.#target = target
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const id = input.redeliveryOf ?? `wamid.${this.#next++}`
    const message = this.#messages.get(id) ?? { id, from: PERSON, timestamp: '1800000000', ...this.#content(input) }
    this.#messages.set(id, message)
    const answer = await this.#target?.(this.signed(notificationOf({ messages: [message] })))
    if (answer?.status !== 200) throw new Error(`the webhook answered ${answer?.status}`)
    return id
  }
  /** A request that Meta signed. */
  signed(notification: unknown, secret = APP_SECRET): PlatformRequest {
    const body = JSON.stringify(notification)
    const signature = createHmac('sha256', secret).update(body).digest('hex')
    const headers = { 'content-type': 'application/json', 'x-hub-signature-256': `sha256=${signature}` }
    return { method: 'POST', headers, body: Buffer.from(body) }
  }
  forgeries(): readonly PlatformRequest[] {
    const message = { id: 'wamid.forged', from: PERSON, timestamp: '1', type: 'text', text: { body: 'forged' } }
    const good = this.signed(notificationOf({ messages: [message] }))
    const query = { 'hub.mode': 'subscribe', 'hub.verify_token': 'guess', 'hub.challenge': '1158201444' }
    return [
      { ...good, headers: {} },
      this.signed(notificationOf({ messages: [message] }), 'another secret'),
      { ...good, body: Buffer.from(Buffer.from(good.body).toString().replace('forged', 'altered')) },
      { method: 'GET', query, headers: {}, body: new Uint8Array() },
    ]
  }
  /** The request with which Meta checks that the webhook is ours. */
  handshake(): PlatformRequest {
    const query = { 'hub.mode': 'subscribe', 'hub.verify_token': VERIFY, 'hub.challenge': '1158201444' }
    return { method: 'GET', query, headers: {}, body: new Uint8Array() }
  }

  #content({ text, files = [], replyTo, button, isOwn }: PlatformInput) {
    const context = replyTo === undefined ? {} : { context: { from: PHONE, id: replyTo } }
    // The number does not hear itself; states of its messages come the same way.
    if (isOwn) return { type: 'unsupported', errors: [{ code: 131_051 }] }
    if (button !== undefined)
      return { type: 'interactive', interactive: { type: 'button_reply', button_reply: { id: button, title: '…' } } }
    const [file] = files
    if (!file) return { type: 'text', text: { body: text }, ...context }
    const id = `${this.#next++}`
    this.#files.set(id, file)
    const type = file.kind === 'file' ? 'document' : file.kind
    const about = { id, mime_type: file.mime, sha256: '…', caption: text }
    return { type, [type]: file.kind === 'file' ? { ...about, filename: file.name } : about, ...context }
  }

  /** Answers one request. */
  async handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    if (call.headers.authorization !== `Bearer ${TOKEN}` || this.revocation.refuses())
      return error(401, 190, 'Invalid OAuth access token - Cannot parse access token')
    const { pathname } = call.url
    if (pathname.startsWith('/media-files/')) return this.#readFile(pathname)
    const [, version = '', id = '', edge = ''] = pathname.split('/')
    if (!/^v\d+\.\d+$/.test(version)) return this.#violation(`unknown path ${pathname}`)
    if (call.method === 'GET') return this.#get(id)
    if (id !== PHONE) return this.#violation(`no such object ${id}`)
    if (edge === 'media') return this.#upload(await call.form())
    return this.#message(call.json as SentBody, response)
  }

  #get(id: string): PlatformAnswer {
    if (id === PHONE)
      return { status: 200, body: { display_phone_number: '+1 555 0100', verified_name: 'Svc', id: PHONE } }
    if (!this.#files.has(id)) return this.#violation(`no such object ${id}`)
    return { status: 200, body: { url: `${this.#server.origin}/media-files/${id}`, mime_type: 'image/png', id } }
  }
  #readFile(pathname: string): PlatformAnswer {
    const file = this.#files.get(pathname.slice('/media-files/'.length))
    return file ? { status: 200, body: file.bytes } : { status: 404 }
  }
  async #upload(form: FormData): Promise<PlatformAnswer> {
    const file = form.get('file')
    if (!(file instanceof File) || form.get('messaging_product') !== 'whatsapp')
      return this.#violation('the upload has no file or no product')
    const id = `upload-${this.#next++}`
    this.#files.set(id, { kind: 'file', name: file.name, mime: file.type, bytes: await file.bytes() })
    return { status: 200, body: { id } }
  }

  #message(body: SentBody, response: ServerResponse): PlatformAnswer | undefined {
    if (body.messaging_product !== 'whatsapp') return this.#violation('messaging_product is required')
    if (body.status === 'read') {
      if (!this.#messages.has(body.message_id ?? '')) return this.#violation('no such message')
      this.typing.push(PERSON)
      return { status: 200, body: { success: true } }
    }
    const fault = this.#shown.takeFault()
    const answer = faultAnswer(fault)
    if (answer) return answer
    if (fault?.kind === 'reset') return resetConnection(response)
    if (body.reaction) {
      this.reactions.push({ messageId: body.reaction.message_id, emoji: body.reaction.emoji })
      return sentAnswer('wamid.reaction')
    }
    const problem = problemOf(body)
    if (problem !== undefined) return this.#violation(problem)
    const id = `wamid.sent.${this.#next++}`
    const media = body[body.type ?? ''] as { id?: string; caption?: string; filename?: string } | undefined
    const file = this.#files.get(media?.id ?? '')
    this.#shown.show({
      id,
      chatId: body.to ?? '',
      text: body.text?.body ?? body.interactive?.body.text ?? media?.caption ?? '',
      replyTo: body.context?.message_id,
      files: file ? [{ ...file, name: media?.filename ?? file.name }] : [],
      buttons: buttonsOf(body),
    })
    return fault?.kind === 'lost_answer' ? resetConnection(response) : sentAnswer(id)
  }
  #violation(what: string): PlatformAnswer {
    this.violations.push(what)
    return error(400, 100, what)
  }
}

/** A notification of the webhook about this number. */
export function notificationOf(value: object, phone = PHONE) {
  const contacts = [{ profile: { name: 'Ada' }, wa_id: PERSON }]
  const metadata = { display_phone_number: '15550100', phone_number_id: phone }
  const change = { field: 'messages', value: { messaging_product: 'whatsapp', metadata, contacts, ...value } }
  return { object: 'whatsapp_business_account', entry: [{ id: '8856996819413533', changes: [change] }] }
}

function sentAnswer(id: string): PlatformAnswer {
  return {
    status: 200,
    body: { messaging_product: 'whatsapp', contacts: [{ input: PERSON, wa_id: PERSON }], messages: [{ id }] },
  }
}

function problemOf({ to, type, text, interactive, recipient_type }: SentBody): string | undefined {
  if (!/^\d+$/.test(to ?? '') || recipient_type !== 'individual') return 'the recipient is wrong'
  if (type === 'text' && (!text || text.body === '' || text.body.length > 4096)) return 'text.body is empty or too long'
  if (!interactive) return undefined
  const { buttons = [], sections = [] } = interactive.action
  if (interactive.body.text.length > 1024) return 'interactive.body.text is too long'
  if (buttons.length > 3 || buttons.some(({ reply }) => reply.title.length > 20 || reply.id.length > 256))
    return 'too many buttons or too long ones'
  if (sections.some(({ rows }) => rows.length > 10 || rows.some(({ title }) => title.length > 24)))
    return 'too many rows or too long ones'
  return undefined
}

function buttonsOf({ interactive }: SentBody) {
  const rows = interactive?.action.sections?.flatMap((section) => section.rows) ?? []
  const replies = interactive?.action.buttons?.map(({ reply }) => reply) ?? []
  return [...replies, ...rows].map(({ id, title }) => ({ label: title, value: id }))
}

function faultAnswer(fault: PlatformFault | undefined): PlatformAnswer | undefined {
  if (fault?.kind === 'rate_limit') {
    const seconds = fault.retryAfterSecs
    return error(400, 131_056, 'Pair rate limit hit', seconds === undefined ? {} : { 'retry-after': String(seconds) })
  }
  if (fault?.kind === 'server_error') return error(500, 131_000, 'Something went wrong')
  if (fault?.kind === 'permanent') return error(400, 131_047, 'Re-engagement message')
  if (fault?.kind === 'auth') return error(401, 190, 'Error validating access token')
  return undefined
}
