import { createHmac } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { allFaults, answerFault } from './faults.ts'
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

const TOKEN = 'line-channel-access-token-AbC123='
const SECRET = '0f1e2d3c4b5a69788796a5b4c3d2e1f0'
export const BOT = 'U00000000000000000000000000000b07'
const ADA = 'U4af4980629af4980629af4980629aada'
const GROUP = 'Ca56f94637cc4347f90a25382909b24b9'
const NAME = '@Helper'

interface Action {
  readonly type?: string
  readonly label?: string
  readonly data?: string
}
interface SentMessage {
  readonly type?: string
  readonly text?: string
  readonly quoteToken?: string
  readonly quickReply?: { readonly items?: readonly { readonly action?: Action }[] }
}
interface Body {
  readonly to?: string
  readonly replyToken?: string
  readonly messages?: readonly SentMessage[]
  readonly chatId?: string
  readonly loadingSeconds?: number
}
interface Token {
  readonly chatId: string
  isSpent: boolean
}

const refuse = (status: number, message: string, more: object = {}): PlatformAnswer => ({
  status,
  body: { message, ...more },
})
const UNAUTHORIZED = refuse(401, 'Authentication failed due to the following reason: invalid token')

/** The Messaging API of LINE: https://developers.line.biz/en/reference/messaging-api/. Ada writes to the bot. */
export class FakeLine implements FakePlatform {
  readonly channel = 'line'
  readonly secrets = [TOKEN, SECRET]
  readonly chats = { direct: ADA, group: GROUP }
  readonly person = ADA
  readonly redelivers = true
  readonly faults = allFaults
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  /** The ways in which messages were taken, in order. */
  readonly ways: ('reply' | 'push')[] = []
  /** Profiles that were asked for. */
  readonly profiles: string[] = []
  /** Content is still prepared. */
  isPreparing = false
  /** The allowance of the month is used up. */
  isOverQuota = false
  readonly #shown = new Shown()
  readonly #events = new Map<string, object>()
  readonly #files = new Map<string, PlatformFile>()
  readonly #quotes = new Map<string, string>()
  readonly #tokens = new Map<string, Token>()
  readonly #accepted = new Map<string, string>()
  #server: PlatformServer | undefined
  /** Files are read from a host of their own. */
  #data: PlatformServer | undefined
  #target: WebhookTarget | undefined
  #next = 1

  static async start(): Promise<FakeLine> {
    const fake = new FakeLine()
    fake.#server = await startPlatformServer((call, response) => fake.#handle(call, response))
    fake.#data = await startPlatformServer((call) => fake.#content(call))
    return fake
  }

  get config() {
    const [base_url, data_url] = [this.#server?.origin ?? '', this.#data?.origin ?? '']
    return { token: TOKEN, channel_secret: SECRET, base_url, data_url }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrong-line-token' }
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
    await this.#data?.[Symbol.asyncDispose]()
  }
  /** As a minute after the events. */
  expireReplyTokens(): void {
    for (const token of this.#tokens.values()) token.isSpent = true
  }

  async deliver(input: PlatformInput): Promise<string> {
    const id = input.redeliveryOf ?? `46878957789826${1000 + this.#next++}`
    const known = this.#events.get(id)
    const event = known
      ? { ...known, deliveryContext: { isRedelivery: true } }
      : this.event(input, input.button === undefined ? { message: this.#message(id, input) } : {})
    this.#events.set(id, event)
    const answer = await this.#target?.(this.signed(this.callback([event])))
    if (answer?.status !== 200) throw new Error(`the webhook answered ${answer?.status}`)
    return id
  }
  /** One event, with the fields that each has. */
  event({ isGroup = false, button, isOwn }: Partial<PlatformInput>, more: object = {}): object {
    const replyToken = `reply-${this.#next++}`
    const chatId = isGroup ? GROUP : ADA
    this.#tokens.set(replyToken, { chatId, isSpent: false })
    return {
      // LINE does not send back what the bot writes; joining a chat is an event of the bot.
      type: isOwn ? 'join' : button === undefined ? 'message' : 'postback',
      webhookEventId: `01FZ74A0TDDPYRVKNK77XKC3${this.#next++}`,
      deliveryContext: { isRedelivery: false },
      timestamp: Date.now(),
      mode: 'active',
      source: isGroup ? { type: 'group', groupId: GROUP, userId: ADA } : { type: 'user', userId: ADA },
      replyToken,
      ...(button !== undefined && { postback: { data: button } }),
      ...more,
    }
  }
  callback(events: readonly object[], destination = BOT): object {
    return { destination, events }
  }
  /** A request that LINE signed. */
  signed(callback: object, secret = SECRET): PlatformRequest {
    const body = JSON.stringify(callback)
    const signature = createHmac('sha256', secret).update(body).digest('base64')
    const headers = { 'content-type': 'application/json; charset=utf-8', 'x-line-signature': signature }
    return { method: 'POST', headers, body: Buffer.from(body) }
  }
  forgeries(): readonly PlatformRequest[] {
    const message = { id: '1', type: 'text', text: 'forged', quoteToken: 'q' }
    const good = this.signed(this.callback([this.event({}, { message })]))
    const altered = Buffer.from(Buffer.from(good.body).toString().replace('forged', 'altered'))
    return [
      { ...good, headers: {} },
      this.signed(this.callback([this.event({}, { message })]), 'another secret'),
      { ...good, body: altered },
      { ...good, headers: { ...good.headers, 'x-line-signature': '' } },
    ]
  }

  #message(id: string, { text, files = [], replyTo, mentionsBot }: PlatformInput): object {
    const quoteToken = `quote-${id}`
    this.#quotes.set(quoteToken, id)
    const quoted = replyTo === undefined ? {} : { quotedMessageId: replyTo }
    const [file] = files
    if (!file) {
      const mentionees = [{ index: 0, length: NAME.length, type: 'user', userId: BOT, isSelf: true }]
      return mentionsBot
        ? { id, type: 'text', quoteToken, text: `${NAME} ${text}`, mention: { mentionees }, ...quoted }
        : { id, type: 'text', quoteToken, text, ...quoted }
    }
    this.#files.set(id, file)
    if (file.kind === 'file') return { id, type: 'file', fileName: file.name, fileSize: file.bytes.length }
    return { id, type: file.kind, quoteToken, contentProvider: { type: 'line' } }
  }

  #handle(call: PlatformCall, response: ServerResponse): PlatformAnswer | undefined {
    if (call.headers.authorization !== `Bearer ${TOKEN}`) return UNAUTHORIZED
    const { pathname } = call.url
    const path = pathname.replace('/v2/bot', '')
    if (call.method === 'GET') return this.#get(path)
    const body = call.json as Body
    if (path === '/chat/loading/start') return this.#loading(body)
    if (path === '/message/push' || path === '/message/reply') return this.#send(path, call, body, response)
    return this.#violation(`unknown path ${pathname}`, 404)
  }

  #get(path: string): PlatformAnswer {
    if (path === '/info')
      return { status: 200, body: { userId: BOT, basicId: '@216ru', displayName: 'Helper', chatMode: 'bot' } }
    if (path === `/profile/${ADA}` || path === `/group/${GROUP}/member/${ADA}`) {
      this.profiles.push(path)
      return { status: 200, body: { userId: ADA, displayName: 'Ada' } }
    }
    if (path === `/group/${GROUP}/summary`) return { status: 200, body: { groupId: GROUP, groupName: 'Harbour' } }
    return refuse(404, 'Not found')
  }
  #content({ url, headers }: PlatformCall): PlatformAnswer {
    if (headers.authorization !== `Bearer ${TOKEN}`) return UNAUTHORIZED
    const [, id = ''] = /^\/v2\/bot\/message\/(\d+)\/content$/.exec(url.pathname) ?? []
    const file = this.#files.get(id)
    if (!file) return refuse(404, 'Not found')
    if (this.isPreparing) return { status: 202, body: {} }
    return { status: 200, body: file.bytes, headers: { 'content-type': file.mime } }
  }
  #loading({ chatId, loadingSeconds = 20 }: Body): PlatformAnswer {
    if (chatId !== ADA) return this.#violation('the animation is for chats with people only')
    if (loadingSeconds % 5 !== 0 || loadingSeconds < 5 || loadingSeconds > 60)
      return this.#violation('loadingSeconds is none of 5, 10, … 60')
    this.typing.push(chatId)
    return { status: 202, body: {} }
  }

  #send(path: string, call: PlatformCall, body: Body, response: ServerResponse): PlatformAnswer | undefined {
    const isReply = path === '/message/reply'
    const key = call.headers['x-line-retry-key']
    if (isReply && key !== undefined) return this.#violation('a reply takes no retry key')
    if (!isReply && !/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(String(key)))
      return this.#violation('the retry key is no UUID')
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer')
      return answerFault(fault, response, {
        rate_limit: (seconds) => ({
          ...refuse(429, 'The API rate limit has been exceeded. Try again later.'),
          ...(seconds !== undefined && { headers: { 'retry-after': String(seconds) } }),
        }),
        server_error: refuse(500, 'Internal error'),
        permanent: refuse(400, 'Failed to send messages'),
        auth: UNAUTHORIZED,
      })
    const answer = isReply ? this.#reply(body) : this.#push(body, String(key))
    return fault ? resetConnection(response) : answer
  }

  #reply(body: Body): PlatformAnswer {
    const token = this.#tokens.get(body.replyToken ?? '')
    if (!token || token.isSpent) return refuse(400, 'Invalid reply token')
    const answer = this.#show(token.chatId, body, 'reply')
    token.isSpent = answer.status === 200
    return answer
  }
  #push(body: Body, key: string): PlatformAnswer {
    const earlier = this.#accepted.get(key)
    if (earlier !== undefined)
      return {
        ...refuse(409, 'The retry key is already accepted', { sentMessages: [{ id: earlier }] }),
        headers: { 'x-line-accepted-request-id': '123e4567' },
      }
    if (body.to !== ADA && body.to !== GROUP) return this.#violation('The property, to, in the request body is invalid')
    if (this.isOverQuota) return refuse(429, 'You have reached your monthly limit.')
    const answer = this.#show(body.to, body, 'push')
    const last = this.sent.at(-1)
    if (answer.status === 200 && last) this.#accepted.set(key, last.id)
    return answer
  }

  #show(chatId: string, { messages = [] }: Body, way: 'reply' | 'push'): PlatformAnswer {
    const [message] = messages
    const problem = messages.length === 1 && message ? this.#problemOf(message) : 'messages has to be one here'
    if (!message || problem !== undefined) return this.#violation(`The request body has 1 error(s): ${problem}`)
    const id = `56123000000000${1000 + this.#next++}`
    const actions = (message.quickReply?.items ?? []).map(({ action = {} }) => action)
    this.ways.push(way)
    this.#shown.show({
      id,
      chatId,
      text: message.text ?? '',
      replyTo: this.#quotes.get(message.quoteToken ?? ''),
      files: [],
      buttons: actions.map(({ label = '', data = '' }) => ({ label, value: data })),
    })
    return { status: 200, body: { sentMessages: [{ id, quoteToken: `quote-${id}` }] } }
  }
  #problemOf({ type, text = '', quoteToken, quickReply }: SentMessage): string | undefined {
    if (type !== 'text' || text === '' || text.length > 5000)
      return 'messages[0].text: Length must be between 1 and 5000'
    if (quoteToken !== undefined && !this.#quotes.has(quoteToken)) return 'Invalid quote token'
    if (!quickReply) return undefined
    const { items = [] } = quickReply
    const isTooLong = items.some(
      ({ action }) => [...(action?.label ?? '')].length > 20 || (action?.data ?? '').length > 300 || !action?.label,
    )
    return items.length === 0 || items.length > 13 || isTooLong ? 'messages[0].quickReply is invalid' : undefined
  }

  #violation(what: string, status = 400): PlatformAnswer {
    this.violations.push(what)
    return refuse(status, what)
  }
}
