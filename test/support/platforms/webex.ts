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

const TOKEN = 'ZDI3MGEyYzQtNmFlNS00NDNhLWFlNzAtdGVzdA'
const SECRET = 'webhook-secret-of-the-test'
const idOf = (kind: string, name: string) =>
  Buffer.from(`ciscospark://us/${kind}/${name}`).toString('base64').replaceAll('=', '')
export const BOT = idOf('PEOPLE', 'the-bot')
const ADA = idOf('PEOPLE', 'ada')
const DIRECT = idOf('ROOM', 'direct')
const GROUP = idOf('ROOM', 'group')
const THREAD = idOf('MESSAGE', 'thread')
const MAX_BYTES = 7439
const MAX_EDITS = 10

interface Message {
  readonly id: string
  readonly roomId: string
  readonly roomType: 'direct' | 'group'
  readonly personId: string
  readonly personEmail: string
  readonly created: string
  readonly text?: string
  readonly html?: string
  readonly parentId?: string
  readonly files?: readonly string[]
  readonly mentionedPeople?: readonly string[]
  readonly updated?: string
}
interface Card {
  readonly contentType?: string
  readonly content?: {
    readonly type?: string
    readonly version?: string
    readonly body?: readonly { readonly type?: string; readonly text?: string }[]
    readonly actions?: readonly { type?: string; title?: string; data?: { value?: string } }[]
  }
}
interface Body {
  readonly roomId?: string
  readonly parentId?: string
  readonly markdown?: string
  readonly attachments?: readonly Card[]
  readonly name?: string
  readonly targetUrl?: string
  readonly resource?: string
  readonly event?: string
  readonly secret?: string
  readonly status?: string
}
export interface FakeWebhook {
  readonly id: string
  name: string
  resource: string
  event: string
  targetUrl: string
  secret: string
  status: string
}

const refuse = (status: number, message: string): PlatformAnswer => ({
  status,
  body: { message, errors: [{ description: message }], trackingId: 'ROUTER_5C5510D1' },
})
const ok = (body: object): PlatformAnswer => ({ status: 200, body })
const UNAUTHORIZED = refuse(401, 'The request requires a valid access token set in the Authorization request header.')
const GONE = refuse(404, 'The requested resource could not be found.')

/** The REST API of Webex: https://developer.webex.com/docs/api/v1. Ada writes; the account is a person or a bot. */
export class FakeWebex implements FakePlatform {
  readonly channel = 'webex'
  readonly secrets = [TOKEN, SECRET]
  readonly chats = { direct: DIRECT, group: GROUP, thread: THREAD }
  readonly person = ADA
  readonly redelivers = true
  readonly faults = allFaults
  readonly answersInJson = true
  readonly removes = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  /** Spaces that the bot may not read. */
  readonly closed = new Set<string>()
  /** Lists of messages are answered when this settles. */
  listsWait = Promise.resolve()
  readonly webhooks: FakeWebhook[] = []
  /** Called when a webhook is registered or set right. */
  onWebhook: (() => void) | undefined
  /** Files are still searched for viruses. */
  isScanning = false
  readonly #isBot: boolean
  readonly #shown = new Shown()
  readonly #messages: Message[] = []
  readonly #actions = new Map<string, object>()
  readonly #files = new Map<string, PlatformFile>()
  readonly #edits = new Map<string, number>()
  #server: PlatformServer | undefined
  #target: WebhookTarget | undefined
  #next = 1

  private constructor(isBot: boolean) {
    this.#isBot = isBot
  }
  static async start({ bot = false }: { readonly bot?: boolean } = {}): Promise<FakeWebex> {
    const fake = new FakeWebex(bot)
    fake.#server = await startPlatformServer((call, response) => fake.#handle(call, response))
    return fake
  }

  get origin(): string {
    return this.#server?.origin ?? ''
  }
  get config() {
    const webhook_url = 'https://svc.test/api/channels/webex/webhook'
    return { token: TOKEN, webhook_url, webhook_secret: SECRET, base_url: `${this.origin}/v1` }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrong-webex-token' }
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
    if (input.button !== undefined) return this.press(input.button)
    if (input.redeliveryOf !== undefined) {
      await this.notify('messages', 'created', input.redeliveryOf)
      return input.redeliveryOf
    }
    const edited = this.#messages.findIndex(({ id }) => id === input.editOf)
    const earlier = this.#messages[edited]
    if (earlier) {
      this.#messages[edited] = { ...earlier, text: input.text, updated: new Date().toISOString() }
      await this.notify('messages', 'updated', earlier.id)
      return earlier.id
    }
    const { id } = this.write(input)
    await this.notify('messages', 'created', id)
    return id
  }
  /** A message that nobody is told of, as while the daemon is away. */
  write(input: PlatformInput, more: Partial<Message> = {}): Message {
    const { text, isGroup, mentionsBot, isOwn, threadId, files = [] } = input
    const mention = `<spark-mention data-object-type="person" data-object-id="${BOT}">Helper</spark-mention>`
    const addresses = files.map((file) => {
      const id = String(this.#next++)
      this.#files.set(id, file)
      return `${this.origin}/v1/contents/${id}`
    })
    const message: Message = {
      id: idOf('MESSAGE', String(this.#next++)),
      roomId: isGroup ? GROUP : DIRECT,
      roomType: isGroup ? 'group' : 'direct',
      personId: isOwn ? BOT : ADA,
      personEmail: isOwn ? 'helper@webex.bot' : 'ada@example.org',
      text: mentionsBot ? `Helper ${text}` : text,
      created: new Date(Date.now() + this.#next).toISOString(),
      ...(mentionsBot && { html: `<p>${mention} ${text}</p>`, mentionedPeople: [BOT] }),
      ...(threadId !== undefined && { parentId: threadId }),
      ...(addresses.length > 0 && { files: addresses }),
      ...more,
    }
    this.#messages.push(message)
    return message
  }
  /** Tells the adapter that something happened, and settles with what it answers. Rejects when it refuses. */
  async notify(resource: string, event: string, id: string, more: object = {}): Promise<void> {
    const message = this.#messages.find((one) => one.id === id)
    const data = { id, roomId: message?.roomId, personId: message?.personId ?? ADA }
    const answer = await this.#target?.(this.signed({ ...this.#envelope(resource, event), data, ...more }))
    if (answer?.status !== 200) throw new Error(`the webhook answered ${answer?.status}`)
  }
  /** A request that Webex signed. */
  signed(notification: object, secret = SECRET): PlatformRequest {
    const body = JSON.stringify(notification)
    const signature = createHmac('sha1', secret).update(body).digest('hex')
    return {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-spark-signature': signature },
      body: Buffer.from(body),
    }
  }
  forgeries(): readonly PlatformRequest[] {
    const { id } = this.write({ text: 'forged' })
    const notification = { ...this.#envelope('messages', 'created'), data: { id, personId: ADA } }
    const good = this.signed(notification)
    const altered = Buffer.from(Buffer.from(good.body).toString().replace('"created"', '"updated"'))
    return [
      { ...good, headers: {} },
      this.signed(notification, 'another secret'),
      { ...good, body: altered },
      { ...good, headers: { 'x-spark-signature': createHmac('sha256', SECRET).update(good.body).digest('hex') } },
    ]
  }

  #envelope(resource: string, event: string): object {
    return {
      id: 'hook',
      name: `svc ${resource} ${event}`,
      resource,
      event,
      createdBy: BOT,
      status: 'active',
      actorId: ADA,
    }
  }
  async press(value: string, roomId = DIRECT): Promise<string> {
    const id = idOf('ATTACHMENT_ACTION', String(this.#next++))
    const created = new Date().toISOString()
    const messageId = this.sent.at(-1)?.id
    this.#actions.set(id, { id, type: 'submit', messageId, inputs: { value }, personId: ADA, roomId, created })
    await this.notify('attachmentActions', 'created', id)
    return id
  }

  async #handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    if (call.headers.authorization !== `Bearer ${TOKEN}`) return UNAUTHORIZED
    const [, version, resource = '', ...rest] = call.url.pathname.split('/')
    if (version !== 'v1') return GONE
    const id = decodeURIComponent(rest.join('/'))
    if (resource === 'messages') return this.#message(call, id, response)
    if (resource === 'webhooks') return this.#webhook(call, id)
    if (resource === 'contents') return this.#content(call, id)
    if (resource === 'rooms') return this.#room(id)
    if (resource === 'people') return this.#person(id)
    const action = resource === 'attachment' ? this.#actions.get(id.replace('actions/', '')) : undefined
    return action ? ok(action) : GONE
  }

  #person(id: string): PlatformAnswer {
    const type = this.#isBot ? 'bot' : 'person'
    if (id === 'me') return ok({ id: BOT, displayName: 'Helper', emails: ['helper@webex.bot'], type })
    return id === ADA ? ok({ id: ADA, displayName: 'Ada', emails: ['ada@webex.test'], type: 'person' }) : GONE
  }
  #room(id: string): PlatformAnswer {
    const rooms = [
      { id: DIRECT, type: 'direct', title: 'Ada' },
      { id: GROUP, type: 'group', title: 'Harbour' },
    ]
    if (id !== '') {
      const room = rooms.find((one) => one.id === id)
      return room ? ok(room) : GONE
    }
    const items = rooms.map((room) => ({ ...room, lastActivity: this.#in(room.id).at(-1)?.created ?? '' }))
    return ok({ items })
  }
  #content(call: PlatformCall, id: string): PlatformAnswer {
    const file = this.#files.get(id)
    if (!file) return GONE
    if (this.isScanning) return { ...refuse(423, 'The file is being scanned'), headers: { 'retry-after': '5' } }
    const headers = {
      'content-type': file.mime,
      'content-disposition': `attachment; filename="${Buffer.from(file.name).toString('latin1')}"`,
      'content-length': String(file.bytes.length),
    }
    return { status: 200, headers, body: call.method === 'HEAD' ? undefined : file.bytes }
  }

  #webhook(call: PlatformCall, id: string): PlatformAnswer {
    if (call.method === 'GET') return ok({ items: this.webhooks })
    this.onWebhook?.()
    const { name = '', targetUrl = '', secret = '', resource = '', event = '', status } = call.json as Body
    if (name === '' || !targetUrl.startsWith('https://')) return this.#violation('the webhook has no name or no https')
    if (call.method === 'PUT') {
      const found = this.webhooks.find((one) => one.id === id)
      if (!found || resource !== '' || event !== '') return this.#violation('the webhook cannot be changed so')
      return ok(Object.assign(found, { name, targetUrl, secret, status: status ?? found.status }))
    }
    if (!/^(messages (created|updated|deleted)|attachmentActions created)$/.test(`${resource} ${event}`))
      return this.#violation(`there is no event ${resource} ${event}`)
    const created = { id: `hook-${this.#next++}`, name, resource, event, targetUrl, secret, status: 'active' }
    this.webhooks.push(created)
    return ok(created)
  }

  async #message(call: PlatformCall, id: string, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    if (call.method === 'GET') return id === '' ? this.#list(call.url.searchParams) : this.#read(id)
    if (call.method === 'DELETE') return this.#shown.remove(id) ? { status: 204 } : GONE
    if (call.method === 'PUT') return this.#edit(id, call.json as Body)
    const type = call.headers['content-type'] ?? ''
    if (!type.startsWith('multipart/')) return this.#send(call.json as Body, [], response)
    const form = await call.form()
    const files = form.getAll('files').filter((file) => file instanceof File)
    return this.#send(Object.fromEntries(form) as Body, await Promise.all(files.map(fileOf)), response)
  }
  #read(id: string): PlatformAnswer {
    const message = this.#messages.find((one) => one.id === id)
    return message && this.#sees(message) ? ok(message) : GONE
  }
  /** The newest first. */
  async #list(query: URLSearchParams): Promise<PlatformAnswer> {
    await this.listsWait
    const roomId = query.get('roomId') ?? ''
    if (this.closed.has(roomId)) return GONE
    if (this.#isBot && roomId === GROUP && query.get('mentionedPeople') !== 'me')
      return this.#refuse(403, 'bots list only messages that mention them')
    const all = this.#in(roomId).toReversed()
    const before = all.findIndex(({ id }) => id === query.get('beforeMessage'))
    const items = all.slice(before + 1).filter((one) => this.#sees(one))
    return ok({ items: items.slice(0, Number(query.get('max') ?? 50)) })
  }
  #in(roomId: string): readonly Message[] {
    return this.#messages.filter((one) => one.roomId === roomId)
  }
  #sees({ roomType, mentionedPeople = [] }: Message): boolean {
    return !this.#isBot || roomType === 'direct' || mentionedPeople.includes(BOT)
  }

  #edit(id: string, { roomId, markdown = '' }: Body): PlatformAnswer {
    const count = (this.#edits.get(id) ?? 0) + 1
    if (count > MAX_EDITS) return refuse(400, 'The message was edited too often')
    if (roomId === undefined || markdown === '') return this.#violation('an edit needs a roomId and a text')
    this.#edits.set(id, count)
    return this.#shown.edit(id, markdown) ? ok(ownMessage(id, roomId)) : GONE
  }
  #send(body: Body, files: readonly PlatformFile[], response: ServerResponse): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer')
      return answerFault(fault, response, {
        rate_limit: (seconds) => ({
          ...refuse(429, 'Too many requests'),
          ...(seconds !== undefined && { headers: { 'retry-after': String(seconds) } }),
        }),
        server_error: refuse(502, 'Bad gateway'),
        permanent: refuse(403, 'The bot is not in the space'),
        auth: UNAUTHORIZED,
      })
    const { roomId = '', parentId, markdown = '', attachments = [] } = body
    if (roomId !== DIRECT && roomId !== GROUP) return this.#refuse(404, 'Could not find a room with provided ID.')
    const problem = problemOf(markdown, attachments, files)
    if (problem !== undefined) return this.#violation(problem)
    const id = idOf('MESSAGE', `sent-${this.#next++}`)
    const actions = attachments[0]?.content?.actions ?? []
    this.#shown.show({
      id,
      chatId: roomId,
      threadId: parentId,
      text: markdown,
      files,
      buttons: actions.map(({ title = '', data }) => ({ label: title, value: data?.value ?? '' })),
    })
    return fault ? resetConnection(response) : ok(ownMessage(id, roomId))
  }

  #violation(what: string): PlatformAnswer {
    return this.#refuse(400, what)
  }
  #refuse(status: number, what: string): PlatformAnswer {
    this.violations.push(what)
    return refuse(status, what)
  }
}

function ownMessage(id: string, roomId: string): Message {
  const created = new Date().toISOString()
  const roomType = roomId === DIRECT ? 'direct' : 'group'
  return { id, roomId, roomType, personId: BOT, personEmail: 'helper@webex.bot', created }
}

function problemOf(text: string, cards: readonly Card[], files: readonly PlatformFile[]): string | undefined {
  if (text === '' && files.length === 0) return 'a message has a text or a file'
  if (Buffer.byteLength(text) > MAX_BYTES) return 'the text is too long'
  if (files.length > 1 || cards.length > 1) return 'a message has one file or one card'
  const [card] = cards
  if (!card) return undefined
  const { contentType, content } = card
  const isCard = contentType === 'application/vnd.microsoft.card.adaptive' && content?.type === 'AdaptiveCard'
  const hasText = content?.body?.some(({ type, text: shown }) => type === 'TextBlock' && shown !== '') ?? false
  const areActions = content?.actions?.every(({ type, title }) => type === 'Action.Submit' && title) ?? false
  return isCard && content.version === '1.3' && hasText && areActions ? undefined : 'the card is wrong'
}
