import { createHmac } from 'node:crypto'
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

const TOKEN = 'EAAGpageTokenOfTheTest'
const VERIFY = 'verify-token-of-the-test'
const APP_SECRET = 'app-secret-fedcba9876543210'
export const PAGE = '1067280970047460'
const ADA = '6040293312741234'
const FILE_TYPES = new Set(['image', 'audio', 'video', 'file'])

interface Body {
  readonly recipient?: { readonly id?: string }
  readonly messaging_type?: string
  readonly sender_action?: string
  readonly payload?: { readonly message_id?: string; readonly reaction?: string }
  readonly reply_to?: { readonly mid?: string }
  readonly message?: {
    readonly text?: string
    readonly quick_replies?: readonly { content_type?: string; title?: string; payload?: string }[]
    readonly attachment?: { readonly type?: string }
  }
}

const refuse = (code: number, message: string, more: object = {}, status = 400): PlatformAnswer => ({
  status,
  body: { error: { message: `(#${code}) ${message}`, type: 'OAuthException', code, fbtrace_id: 'BLBz', ...more } },
})
const INVALID_TOKEN = refuse(190, 'Invalid OAuth access token.', {}, 401)

/** The Messenger Platform: https://developers.facebook.com/docs/messenger-platform. Ada writes to a page. */
export class FakeMessenger implements FakePlatform {
  readonly channel = 'messenger'
  readonly secrets = [TOKEN, APP_SECRET, VERIFY]
  readonly chats = { direct: ADA }
  readonly person = ADA
  readonly redelivers = true
  readonly faults = allFaults
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  /** Whether the app may read profiles. */
  tellsNames = true
  readonly #shown = new Shown()
  readonly #events = new Map<string, object>()
  readonly #files = new Map<string, PlatformFile>()
  #server: PlatformServer | undefined
  #target: WebhookTarget | undefined
  #next = 1

  static async start(): Promise<FakeMessenger> {
    const fake = new FakeMessenger()
    fake.#server = await startPlatformServer((call, response) => fake.#handle(call, response))
    return fake
  }

  get origin(): string {
    return this.#server?.origin ?? ''
  }
  get config() {
    return { token: TOKEN, verify_token: VERIFY, app_secret: APP_SECRET, base_url: this.origin }
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
    await this.#server?.[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const mid = input.redeliveryOf ?? `m_AG5Hz2Uq7tuwNEhXfYYKj8mJEM${this.#next++}`
    const event = this.#events.get(mid) ?? this.event({ message: this.#message(mid, input) }, input.isOwn)
    this.#events.set(mid, event)
    const answer = await this.#target?.(this.signed(notificationOf([event])))
    if (answer?.status !== 200) throw new Error(`the webhook answered ${answer?.status}`)
    return mid
  }
  /** One event. What the page writes itself comes as an echo. */
  event(content: object, isOwn = false): object {
    const [sender, recipient] = isOwn ? [PAGE, ADA] : [ADA, PAGE]
    return { sender: { id: sender }, recipient: { id: recipient }, timestamp: Date.now(), ...content }
  }
  /** A request that Meta signed. */
  signed(notification: object, secret = APP_SECRET): PlatformRequest {
    const body = JSON.stringify(notification)
    const signature = createHmac('sha256', secret).update(body).digest('hex')
    const headers = { 'content-type': 'application/json', 'x-hub-signature-256': `sha256=${signature}` }
    return { method: 'POST', headers, body: Buffer.from(body) }
  }
  handshake(token = VERIFY): PlatformRequest {
    const query = { 'hub.mode': 'subscribe', 'hub.verify_token': token, 'hub.challenge': '1158201444' }
    return { method: 'GET', query, headers: {}, body: new Uint8Array() }
  }
  forgeries(): readonly PlatformRequest[] {
    const notification = notificationOf([this.event({ message: { mid: 'm_forged', text: 'forged' } })])
    const good = this.signed(notification)
    const altered = Buffer.from(Buffer.from(good.body).toString().replace('"forged"', '"altered"'))
    return [
      { ...good, headers: {} },
      this.signed(notification, 'another secret'),
      { ...good, body: altered },
      this.handshake('guess'),
    ]
  }

  #message(mid: string, { text, files = [], replyTo, button, isOwn }: PlatformInput): object {
    const more = { ...(replyTo !== undefined && { reply_to: { mid: replyTo } }), ...(isOwn && { is_echo: true }) }
    if (button !== undefined) return { mid, text: 'the label', quick_reply: { payload: button }, ...more }
    const [file] = files
    if (!file) return { mid, text, ...more }
    const id = String(this.#next++)
    this.#files.set(id, file)
    const url = `${this.origin}/cdn/${id}/${encodeURIComponent(file.name)}?oh=abc&oe=def`
    return { mid, text, attachments: [{ type: file.kind, payload: { url } }], ...more }
  }

  async #handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { pathname, searchParams } = call.url
    if (pathname.startsWith('/cdn/')) return this.#cdn(call)
    if (searchParams.has('access_token')) this.violations.push('the token is part of the address')
    if (call.headers.authorization !== `Bearer ${TOKEN}`) return INVALID_TOKEN
    const [, version = '', id = '', edge = ''] = pathname.split('/')
    if (!/^v\d+\.\d+$/.test(version)) return this.#violation(`unknown path ${pathname}`)
    if (call.method === 'GET') return this.#get(id)
    if (id !== 'me' || edge !== 'messages') return this.#violation(`unknown path ${pathname}`)
    const type = call.headers['content-type'] ?? ''
    if (!type.startsWith('multipart/')) return this.#send(call.json as Body, [], response)
    const form = await call.form()
    const file = form.get('filedata')
    const files = file instanceof File ? [await fileOf(file)] : []
    const fields = ['recipient', 'message', 'reply_to'].flatMap((name) => {
      const value = form.get(name)
      return typeof value === 'string' ? [[name, JSON.parse(value) as unknown] as const] : []
    })
    const body = { ...Object.fromEntries(fields), messaging_type: form.get('messaging_type') } as Body
    return this.#send(body, files, response)
  }

  #get(id: string): PlatformAnswer {
    if (id === 'me') return { status: 200, body: { id: PAGE, name: 'The Harbour' } }
    if (id !== ADA || !this.tellsNames) return refuse(100, 'Unsupported get request.', { error_subcode: 33 })
    return { status: 200, body: { first_name: 'Ada', last_name: 'Lovelace', id: ADA } }
  }
  #cdn({ url, headers }: PlatformCall): PlatformAnswer {
    if (headers.authorization !== undefined) this.violations.push('the token was sent to the server of files')
    const file = this.#files.get(url.pathname.split('/')[2] ?? '')
    return file ? { status: 200, body: file.bytes, headers: { 'content-type': file.mime } } : { status: 404 }
  }

  #send(body: Body, files: readonly PlatformFile[], response: ServerResponse): PlatformAnswer | undefined {
    const chatId = body.recipient?.id ?? ''
    if (body.sender_action !== undefined) return this.#action(chatId, body)
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer')
      return answerFault(fault, response, {
        rate_limit: (seconds) => ({
          ...refuse(613, 'Calls to this API have exceeded the rate limit.'),
          ...(seconds !== undefined && { headers: { 'retry-after': String(seconds) } }),
        }),
        server_error: refuse(2, 'An unexpected error has occurred.', { is_transient: true }, 500),
        permanent: refuse(10, 'This message is sent outside of allowed window.', { error_subcode: 2_018_278 }),
        auth: INVALID_TOKEN,
      })
    if (chatId !== ADA) return refuse(100, 'No matching user found', { error_subcode: 2_018_001 })
    const problem = problemOf(body, files)
    if (problem !== undefined) return this.#violation(problem)
    const id = `m_sent_${this.#next++}`
    this.#shown.show({
      id,
      chatId,
      text: body.message?.text ?? '',
      replyTo: body.reply_to?.mid,
      files,
      buttons: (body.message?.quick_replies ?? []).map(({ title = '', payload = '' }) => ({
        label: title,
        value: payload,
      })),
    })
    if (fault) return resetConnection(response)
    return { status: 200, body: { recipient_id: chatId, message_id: id } }
  }

  #action(chatId: string, { sender_action: action, payload, message }: Body): PlatformAnswer {
    if (message) return this.#violation('a sender action has no message')
    if (action === 'typing_on') this.typing.push(chatId)
    else if (action === 'react' && this.#events.has(payload?.message_id ?? ''))
      this.reactions.push({ messageId: payload?.message_id ?? '', emoji: payload?.reaction ?? '' })
    else return this.#violation(`the action ${action} is wrong`)
    return { status: 200, body: { recipient_id: chatId } }
  }

  #violation(what: string): PlatformAnswer {
    this.violations.push(what)
    return refuse(100, what)
  }
}

/** A notification of the webhook about a page. */
export function notificationOf(messaging: readonly unknown[], page = PAGE): object {
  return { object: 'page', entry: [{ id: page, time: 1_800_000_000_000, messaging }] }
}

function problemOf({ messaging_type: type, message }: Body, files: readonly PlatformFile[]): string | undefined {
  if (type !== 'RESPONSE') return 'messaging_type is wrong'
  const { text, attachment, quick_replies: choices } = message ?? {}
  if ((text === undefined) === (attachment === undefined)) return 'a message has either a text or an attachment'
  if (attachment && (files.length !== 1 || !FILE_TYPES.has(attachment.type ?? ''))) return 'the attachment is wrong'
  if (text !== undefined && (text === '' || text.length > 2000)) return 'the text is empty or too long'
  if (choices === undefined) return undefined
  const isWrong = choices.some(
    ({ content_type: kind, title = '', payload = '' }) =>
      kind !== 'text' || title === '' || [...title].length > 20 || payload.length > 1000,
  )
  return choices.length === 0 || choices.length > 13 || isWrong ? 'the quick replies are wrong' : undefined
}
