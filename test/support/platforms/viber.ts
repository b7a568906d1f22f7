import { createHmac } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { allFaults, answerFault } from './faults.ts'
import { Recorded, resetConnection, Shown, startPlatformServer } from './http.ts'
import type { PlatformAnswer, PlatformCall, PlatformServer } from './http.ts'
import type {
  FakePlatform,
  PlatformFault,
  PlatformFile,
  PlatformInput,
  PlatformRequest,
  WebhookTarget,
} from './platform.ts'

const TOKEN = '445da6az1s345z78-dazcczb2542zv51a-e0vc5fva17480im9'
const ADA = '01234567890A='
const NAME = 'Helper'
const EVENT_TYPES = new Set([
  'delivered',
  'seen',
  'failed',
  'subscribed',
  'unsubscribed',
  'conversation_started',
  'message',
  'webhook',
])
/** Beyond what a number of JavaScript keeps: neighbours would be the same. */
const FIRST_TOKEN = 4_912_661_846_655_238_145n
const MAX_JSON = 30_720

interface Button {
  readonly Columns?: number
  readonly Rows?: number
  readonly ActionType?: string
  readonly ActionBody?: string
  readonly Text?: string
}
interface Body {
  readonly url?: string
  readonly event_types?: readonly string[]
  readonly receiver?: string
  readonly type?: string
  readonly text?: string
  readonly sender?: { readonly name?: string; readonly avatar?: string | null }
  readonly min_api_version?: number
  readonly keyboard?: { readonly Type?: string; readonly Buttons?: readonly Button[] }
}

/** Viber answers with status 200, whatever happened. Numbers of 64 bits are written into the text. */
const answer = (status: number, message: string, more: object = {}): PlatformAnswer => ({
  status: 200,
  body: { status, status_message: message, ...more },
})
const INVALID_TOKEN = answer(2, 'invalidAuthToken')

/** The REST API of Viber: https://developers.viber.com/docs/api/rest-bot-api/. Ada subscribed to the bot. */
export class FakeViber implements FakePlatform {
  readonly channel = 'viber'
  readonly secrets = [TOKEN]
  readonly chats = { direct: ADA }
  readonly person = ADA
  readonly redelivers = true
  readonly faults = allFaults
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  /** Where Viber sends its events. */
  webhookUrl = ''
  readonly #set = new Recorded<string>('webhooks')
  readonly #shown = new Shown()
  readonly #events = new Map<string, string>()
  readonly #files = new Map<string, PlatformFile>()
  #server: PlatformServer | undefined
  #target: WebhookTarget | undefined
  #next = 0n

  static async start(): Promise<FakeViber> {
    const fake = new FakeViber()
    fake.#server = await startPlatformServer((call, response) => fake.#handle(call, response))
    return fake
  }

  get origin(): string {
    return this.#server?.origin ?? ''
  }
  get config() {
    const webhook_url = 'https://svc.test/api/channels/viber/webhook'
    return { token: TOKEN, webhook_url, sender_name: NAME, base_url: `${this.origin}/pa` }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrong-viber-token' }
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
  /** Settles when the webhook is set. */
  async waitForListener(): Promise<void> {
    await this.#set.wait(1)
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const token = input.redeliveryOf ?? String(FIRST_TOKEN + this.#next++)
    // The bot hears that its own messages were delivered, not the messages.
    const event = this.#events.get(token) ?? (input.isOwn ? this.event('delivered', token) : this.message(token, input))
    this.#events.set(token, event)
    const response = await this.#target?.(this.signed(event))
    if (response?.status !== 200) throw new Error(`the webhook answered ${response?.status}`)
    return token
  }
  /** The JSON of an event. The token is a number of 64 bits. */
  event(event: string, token = '1', more: object = {}): string {
    const json = JSON.stringify({ event, timestamp: Date.now(), chat_hostname: 'SN-CHAT-01_', ...more })
    return json.replace('{', `{"message_token":${token},`)
  }
  message(token: string, { text, files: [file] = [], button }: PlatformInput, more: object = {}): string {
    const sender = {
      id: ADA,
      name: 'Ada',
      avatar: 'https://share.viber.com/1',
      language: 'en',
      country: 'UK',
      api_version: 1,
    }
    const message = file ? this.#file(file, text) : { type: 'text', text: button ?? text }
    return this.event('message', token, { sender, message: { ...message, tracking_data: '' }, silent: false, ...more })
  }
  /** A request that Viber signed. */
  signed(event: string, token = TOKEN): PlatformRequest {
    const signature = createHmac('sha256', token).update(event).digest('hex')
    const headers = { 'content-type': 'application/json', 'x-viber-content-signature': signature }
    return { method: 'POST', headers, body: Buffer.from(event) }
  }
  forgeries(): readonly PlatformRequest[] {
    const good = this.signed(this.message('1', { text: 'forged' }))
    const altered = Buffer.from(Buffer.from(good.body).toString().replace('forged', 'altered'))
    return [
      { ...good, headers: {} },
      this.signed(this.message('1', { text: 'forged' }), 'another token'),
      { ...good, body: altered },
      // The signature of the client library's query is none.
      { ...good, headers: {}, query: { sig: good.headers['x-viber-content-signature'] ?? '' } },
    ]
  }

  #file(file: PlatformFile, text: string): object {
    const id = String(this.#next++)
    this.#files.set(id, file)
    const media = `${this.origin}/media/${id}?key=abc`
    if (file.kind !== 'image') return { type: 'file', media, file_name: file.name, file_size: file.bytes.length }
    return { type: 'picture', media, thumbnail: media, text }
  }

  async #handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { pathname } = call.url
    const body = (call.json ?? {}) as Body & { auth_token?: string }
    if (pathname.startsWith('/media/')) return this.#media(call)
    if (call.method !== 'POST') return { status: 404 }
    const token = call.headers['x-viber-auth-token'] ?? body.auth_token
    if (token === undefined) return answer(2, 'missing_auth_token')
    if (token !== TOKEN) return INVALID_TOKEN
    if (call.bytes.length > MAX_JSON) return this.#violation('the request has more than 30 kB')
    if (pathname === '/pa/get_account_info') return this.#account()
    if (pathname === '/pa/set_webhook') return this.#setWebhook(body)
    if (pathname === '/pa/send_message') return this.#send(body, response)
    return this.#violation(`unknown path ${pathname}`)
  }

  #media({ url, headers }: PlatformCall): PlatformAnswer {
    if (headers['x-viber-auth-token'] !== undefined) this.violations.push('the token was sent to the server of files')
    const file = this.#files.get(url.pathname.slice('/media/'.length))
    return file ? { status: 200, body: file.bytes, headers: { 'content-type': file.mime } } : { status: 404 }
  }

  #account(): PlatformAnswer {
    return answer(0, 'ok', { id: 'pa:75346594275468546724', name: NAME, uri: 'helperbot', webhook: this.webhookUrl })
  }

  /** Viber calls the webhook before it answers. */
  async #setWebhook({ url = '', event_types: types = [] }: Body): Promise<PlatformAnswer> {
    if (!url.startsWith('https://')) return this.#violation('the webhook has no https', 1, 'invalidUrl')
    if (types.some((type) => !EVENT_TYPES.has(type))) return this.#violation('an event type is unknown')
    const response = await this.#target?.(this.signed(this.event('webhook')))
    if (response?.status !== 200) return answer(1, 'invalidUrl')
    this.webhookUrl = url
    this.#set.add(url)
    return answer(0, 'ok', { event_types: types })
  }

  #send(body: Body, response: ServerResponse): PlatformAnswer | undefined {
    if (this.webhookUrl === '') return answer(10, 'webhookNotSet')
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer')
      return answerFault(fault, response, {
        rate_limit: (seconds) => ({
          ...answer(12, 'tooManyRequests'),
          ...(seconds !== undefined && { headers: { 'retry-after': String(seconds) } }),
        }),
        server_error: { status: 502, body: Buffer.from('<html>Bad Gateway</html>') },
        permanent: answer(6, 'notSubscribed'),
        auth: INVALID_TOKEN,
      })
    const problem = problemOf(body)
    if (problem !== undefined) return this.#violation(problem)
    if (body.receiver !== ADA) return answer(5, 'receiverNotRegistered')
    const id = String(FIRST_TOKEN + this.#next++)
    const buttons = (body.keyboard?.Buttons ?? []).map(({ Text = '', ActionBody = '' }) => ({
      label: Text,
      value: ActionBody,
    }))
    this.#shown.show({ id, chatId: ADA, text: body.text ?? '', files: [], buttons })
    if (fault) return resetConnection(response)
    const taken = `{"status":0,"status_message":"ok","message_token":${id},"chat_hostname":"SN-CHAT-01_"}`
    return { status: 200, body: Buffer.from(taken), headers: { 'content-type': 'application/json' } }
  }

  #violation(what: string, status = 3, message = 'badData'): PlatformAnswer {
    this.violations.push(what)
    return answer(status, message)
  }
}

function problemOf({ type, text = '', sender, keyboard }: Body): string | undefined {
  const name = sender?.name ?? ''
  if (name === '' || name.length > 28) return 'the sender has no name, or a long one'
  if (type !== 'text' || text === '' || text.length > 7000) return 'the text is empty or too long'
  if (!keyboard) return undefined
  const { Type, Buttons = [] } = keyboard
  if (Type !== 'keyboard' || Buttons.length === 0 || Buttons.length > 12) return 'the keyboard is wrong'
  return Buttons.some(({ ActionBody, Text = '' }) => !ActionBody || Text.length > 250) ? 'a button is wrong' : undefined
}
