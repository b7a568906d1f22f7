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

const TOKEN = 'xpbt-bot-token-0123456789'
const APP_KEY = 'xpat-app-key-0123456789'
const SIGNING = 'xpss-signing-secret-0123'
const UPLOAD_TOKEN = 'upload-token'
const WORKSPACE = '668478600000000000000001'
const BOT = '668478600000000000000002'
const ADA = '668478600000000000000003'
const DIRECT = '668478600000000000000004'
const CHANNEL = '668478600000000000000005'
const THREAD = '668478600000000000000006'
const EMOJI: Readonly<Record<string, string>> = { ':+1:': '👍', ':eyes:': '👀' }

interface Body {
  readonly text?: string
  readonly blocks?: readonly {
    readonly type: string
    readonly elements: readonly {
      readonly type: string
      readonly text?: { readonly text: string }
      readonly value?: string
    }[]
  }[]
  readonly files?: readonly string[]
}

const failed = (status: number, message: string, headers = {}): PlatformAnswer => ({
  status,
  headers,
  body: { message },
})
const UNAUTHORIZED = failed(401, 'Unauthorized')

/** The API and the requests of Pumble: github.com/CAKE-com/pumble-node-sdk */
export class FakePumble implements FakePlatform {
  readonly channel = 'pumble'
  readonly secrets = [TOKEN, APP_KEY, SIGNING]
  readonly chats = { direct: DIRECT, group: CHANNEL, thread: THREAD }
  readonly person = ADA
  readonly faults = allFaults
  readonly removes = true
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  /** What was asked for, without messages that were sent. */
  readonly reads: string[] = []
  /** What the bot has no scope for. */
  readonly forbidden = new Set<string>()
  /** A place of a file that is not one of Pumble. */
  foreignPath: string | undefined
  readonly #shown = new Shown()
  readonly #posted = new Map<string, Record<string, unknown>>()
  readonly #files = new Map<string, PlatformFile>()
  readonly #filesOf = new Map<string, readonly string[]>()
  #server: PlatformServer | undefined
  #target: WebhookTarget | undefined
  #next = 1

  static async start(): Promise<FakePumble> {
    const fake = new FakePumble()
    fake.#server = await startPlatformServer((call, response) => fake.#handle(call, response))
    return fake
  }

  get origin(): string {
    return this.#server?.origin ?? ''
  }
  get config() {
    return { token: TOKEN, app_key: APP_KEY, signing_secret: SIGNING, base_url: this.origin, files_url: this.origin }
  }
  get wrongConfig() {
    return { ...this.config, token: 'xpbt-wrong' }
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
    if (input.button !== undefined) return this.#press(input.button)
    const id = input.editOf ?? this.#id()
    const posted = this.#posted.get(id) ?? this.#message(input, id)
    const shown = input.editOf === undefined ? posted : { ...posted, tx: input.text, e: true }
    this.#posted.set(id, shown)
    await this.post(this.event(shown, input.editOf === undefined ? 'NEW_MESSAGE' : 'UPDATED_MESSAGE'))
    return id
  }
  /** Sends anything, signed as Pumble signs. */
  async post(payload: object): Promise<void> {
    const { status } = (await this.#target?.(this.signed(payload))) ?? { status: 0 }
    if (status !== 200) throw new Error(`the webhook answered ${status}`)
  }
  event(posted: object, eventType = 'NEW_MESSAGE') {
    const body = JSON.stringify({ ...posted, ty: eventType })
    return { messageType: 'PUMBLE_EVENT', eventType, workspaceId: WORKSPACE, workspaceUserIds: [BOT], body }
  }
  posted(more: object = {}) {
    const id = this.#id()
    return {
      mId: id,
      wId: WORKSPACE,
      cId: DIRECT,
      aId: ADA,
      tx: 'hi',
      tsm: 1_763_640_000_123,
      f: [],
      md: [],
      e: false,
      eph: false,
      ...more,
    }
  }
  trigger(more: object) {
    return { workspaceId: WORKSPACE, userId: ADA, channelId: CHANNEL, triggerId: this.#id(), ...more }
  }
  signed(payload: object, timestamp: number | string = Date.now(), secret = SIGNING): PlatformRequest {
    const body = JSON.stringify(payload)
    const signature = createHmac('sha256', secret).update(`${timestamp}:${body}`).digest('hex')
    const headers = { 'x-pumble-request-timestamp': String(timestamp), 'x-pumble-request-signature': signature }
    return { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: Buffer.from(body) }
  }
  forgeries(): readonly PlatformRequest[] {
    const event = this.event(this.posted({ tx: 'forged' }))
    const good = this.signed(event)
    const { 'x-pumble-request-signature': _, ...unsigned } = good.headers
    const { 'x-pumble-request-timestamp': __, ...undated } = good.headers
    return [
      { ...good, headers: {} },
      { ...good, headers: unsigned },
      { ...good, headers: undated },
      { ...good, headers: { ...good.headers, 'x-pumble-request-signature': '00' } },
      { ...good, headers: { ...good.headers, 'x-pumble-request-timestamp': String(Date.now() + 1) } },
      { ...good, body: Buffer.from(Buffer.from(good.body).toString().replace('forged', 'altered')) },
      this.signed(event, Date.now() - 600_000),
      this.signed(event, Math.floor(Date.now() / 1000) - 600),
      this.signed(event, 'never'),
      this.signed(event, Date.now(), 'another secret'),
    ]
  }

  #id(): string {
    return `6684786000000000000${String(this.#next++).padStart(5, '0')}`
  }
  #message(input: PlatformInput, id: string) {
    const files = (input.files ?? []).map((file) => this.#keep(file))
    this.#filesOf.set(id, files)
    return this.posted({
      mId: id,
      cId: input.isGroup || input.threadId !== undefined ? CHANNEL : DIRECT,
      aId: input.isOwn ? BOT : ADA,
      tx: input.mentionsBot ? `<<@${BOT}>> ${input.text}` : input.text,
      md: input.mentionsBot ? [BOT] : [],
      ...(input.threadId !== undefined && { trId: input.threadId, trMt: 'the first one' }),
      // Their names are as short as the others, and not documented.
      f: files.map((file) => ({ id: file })),
    })
  }
  async #press(value: string): Promise<string> {
    const shown = this.sent.at(-1)
    const known = shown?.buttons.find((button) => button.value === value)?.value
    const press = { messageType: 'BLOCK_INTERACTION', sourceType: 'MESSAGE', sourceId: shown?.id, actionType: 'button' }
    const payload = JSON.stringify({ value: known })
    await this.post(this.trigger({ ...press, channelId: shown?.chatId, onAction: 'svc', payload, loadingTimeout: 15 }))
    return ''
  }
  #keep(file: PlatformFile): string {
    const id = `file-${this.#next++}`
    this.#files.set(id, file)
    return id
  }

  async #handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { method, url, headers } = call
    const { pathname } = url
    if (pathname === '/upload/files') return this.#take(call)
    if (headers['token'] !== TOKEN || headers['x-app-token'] !== APP_KEY) return UNAUTHORIZED
    const route = `${method} ${pathname}`
    if (this.forbidden.has(route)) return failed(403, 'Missing scope')
    if (method === 'GET') this.reads.push(route)
    if (route === 'GET /oauth2/me')
      return {
        status: 200,
        body: { workspaceId: WORKSPACE, workspaceName: 'Test', workspaceUserId: BOT, workspaceUserName: 'Helper' },
      }
    if (route === `GET /v1/workspaceUsers/${ADA}`)
      return { status: 200, body: { id: ADA, name: 'Ada', email: 'ada@x.test', isAddonBot: false } }
    if (route.startsWith('GET /v1/workspaceUsers/'))
      return { status: 200, body: { id: 'x', name: 'Other', isAddonBot: true } }
    if (route.startsWith('GET /files/')) return this.#download(pathname.slice('/files/'.length))
    if (route === 'POST /v1/files/upload/token')
      return this.#allowUpload(call.json as { filename?: string; length?: number })
    if (route === 'POST /v1/files/upload/complete')
      return this.#complete(call.json as { original?: { id?: string }; signature?: string })
    const [, reacted = ''] = /^POST \/v1\/messages\/([^/]+)\/reactions$/.exec(route) ?? []
    if (reacted !== '') return this.#react(reacted, call.json as { code?: string })
    const [, channel = '', rest] = /^\/v1\/channels\/([^/]+)(?:\/(.*))?$/.exec(pathname) ?? []
    if (channel !== DIRECT && channel !== CHANNEL) return this.#violation(`the request ${route}`, 404)
    if (rest === undefined) return { status: 200, body: channelInfo(channel) }
    const [, id] = /^messages(?:\/([^/]+))?$/.exec(rest) ?? []
    if (method === 'POST') return this.#create(call.json as Body, { channel, threadId: id, response })
    if (method === 'GET') return { status: 200, body: { id, files: this.#describe(id ?? '') } }
    if (method === 'PUT') return this.#update(id ?? '', call.json as Body)
    return this.#shown.remove(id ?? '') ? { status: 200 } : failed(404, 'Message not found')
  }

  #create(
    body: Body,
    { channel, threadId, response }: { channel: string; threadId: string | undefined; response: ServerResponse },
  ): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer')
      return answerFault(fault, response, {
        rate_limit: (seconds) =>
          failed(429, 'Too Many Requests', seconds === undefined ? {} : { 'retry-after': String(seconds) }),
        server_error: failed(500, 'Internal Server Error'),
        permanent: failed(403, 'The channel is archived'),
        auth: UNAUTHORIZED,
      })
    const { text, files = [] } = body
    if (text === undefined || text.length > 100_000 || (text === '' && files.length === 0))
      return this.#violation('a message without a text')
    if (text.includes('<<@')) return this.#violation('a mention')
    const kept = files.flatMap((id) => this.#files.get(id) ?? [])
    if (kept.length < files.length || files.length > 20) return this.#violation('files that were not uploaded')
    const id = this.#id()
    this.#shown.show({ id, chatId: channel, threadId, text, files: kept, buttons: buttonsOf(body) })
    return fault ? resetConnection(response) : { status: 200, body: { id, channelId: channel } }
  }
  #update(id: string, { text = '' }: Body): PlatformAnswer {
    return this.#shown.edit(id, text) ? { status: 200, body: { id } } : failed(404, 'Message not found')
  }
  #react(messageId: string, { code = '' }: { code?: string }): PlatformAnswer {
    const emoji = EMOJI[code]
    if (emoji === undefined) return this.#violation(`the emoji ${code}`)
    this.reactions.push({ messageId, emoji })
    return { status: 204 }
  }

  #allowUpload({ filename = '', length = 0 }: { filename?: string; length?: number }): PlatformAnswer {
    if (filename === '' || length < 1) return this.#violation('an upload without a name or a length')
    return { status: 200, body: { token: UPLOAD_TOKEN, remoteProductToken: 'remote' } }
  }
  async #take(call: PlatformCall): Promise<PlatformAnswer> {
    if (call.headers['token'] !== undefined) this.violations.push('the token was sent to the upload server')
    if (call.headers['authtoken'] !== UPLOAD_TOKEN || call.headers['remote-product-token'] !== 'remote')
      return UNAUTHORIZED
    const file = (await call.form()).get('file')
    if (!(file instanceof File)) return this.#violation('an upload without a file')
    return { status: 200, body: { original: { id: this.#keep(await fileOf(file)) }, thumbs: [], signature: 'signed' } }
  }
  #complete({ original, signature }: { original?: { id?: string }; signature?: string }): PlatformAnswer {
    if (signature !== 'signed' || !this.#files.has(original?.id ?? '')) return this.#violation('an upload that is none')
    return { status: 200, body: { id: original?.id, path: 'x', name: 'x' } }
  }
  #describe(message: string) {
    return (this.#filesOf.get(message) ?? []).map((id) => {
      const { name, mime, bytes } = this.#files.get(id) ?? { name: '', mime: '', bytes: new Uint8Array() }
      return {
        id,
        owner: ADA,
        name,
        mimeType: mime,
        size: bytes.byteLength,
        path: this.foreignPath ?? `${this.origin}/files/${id}`,
      }
    })
  }
  #download(id: string): PlatformAnswer {
    const file = this.#files.get(id)
    return file
      ? { status: 200, body: file.bytes, headers: { 'content-type': file.mime } }
      : failed(404, 'No such file')
  }

  #violation(what: string, status = 400): PlatformAnswer {
    this.violations.push(what)
    return failed(status, what)
  }
}

function channelInfo(id: string) {
  return id === DIRECT
    ? { channel: { id, workspaceId: WORKSPACE, channelType: 'DIRECT' }, users: [ADA, BOT] }
    : { channel: { id, workspaceId: WORKSPACE, channelType: 'PUBLIC', name: 'general' }, users: [ADA, BOT] }
}
function buttonsOf({ blocks = [] }: Body) {
  const elements = blocks.flatMap((block) => (block.type === 'actions' ? block.elements : []))
  return elements.map(({ text, value }) => ({ label: text?.text ?? '', value: value ?? '' }))
}
