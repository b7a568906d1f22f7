import type { IncomingMessage, ServerResponse } from 'node:http'
import { allFaults, fileKind } from './faults.ts'
import { resetConnection, Shown } from './http.ts'
import type { PlatformAnswer, PlatformCall, PlatformServer } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformFile, PlatformInput } from './platform.ts'
import { Presence, startSocketServer } from './sockets.ts'
import type { AcceptPeer, Peer } from './sockets.ts'

export const NUMBER = '+4930123456'
export const ADA = { number: '+33612345678', uuid: '2a6f3c1e-0b7d-4b6a-9d0e-5f1c2b3a4d5e' }
const TOKEN = 'proxy-token-5c2e'
const GROUP_ID = Buffer.alloc(32, 7).toString('base64')
const GROUP = `group.${GROUP_ID}`

interface Listener {
  send(event: StoredEvent): void
  cut(): void
}
interface StoredEvent {
  readonly id: number
  readonly body: object
}
/** A message as both servers are asked to send it. */
interface Sending {
  readonly to: string | undefined
  readonly text: string
  readonly files: readonly string[]
  readonly quoteTimestamp?: number | undefined
  readonly quoteAuthor?: string | undefined
}
type Refused = { readonly fault: PlatformFault } | { readonly wrong: string }

/** A number of Signal, as a server of it tells of messages and takes them. */
export abstract class FakeSignal implements FakePlatform {
  readonly channel = 'signal'
  readonly secrets = [TOKEN]
  readonly chats = { direct: ADA.uuid, group: GROUP }
  readonly person = ADA.uuid
  readonly faults = allFaults
  readonly removes = true
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  abstract readonly redelivers: boolean
  protected readonly shown = new Shown()
  protected readonly listener = new Presence<Listener>()
  protected readonly events: StoredEvent[] = []
  protected readonly files = new Map<string, PlatformFile>()
  #server: PlatformServer | undefined
  #time = Date.now()

  protected async listen(): Promise<this> {
    this.#server = await startSocketServer(
      (call, response) => this.#guard(call, response),
      (peer, request) => this.accept(peer, request),
    )
    return this
  }

  get config(): Readonly<Record<string, unknown>> {
    return { base_url: this.#server?.origin ?? '', number: NUMBER, token: TOKEN }
  }
  get wrongConfig() {
    return { ...this.config, number: '+4930999999' }
  }
  get sent() {
    return this.shown.sent
  }
  waitForSent(count: number) {
    return this.shown.waitForSent(count)
  }
  fail(fault: PlatformFault): void {
    this.shown.fail(fault)
  }
  setWebhook(): void {}
  async waitForListener(): Promise<void> {
    await this.listener.wait()
  }
  async disconnect(): Promise<void> {
    const listener = await this.listener.wait()
    this.listener.set(undefined)
    listener.cut()
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const earlier = this.events.find(({ body }) => idOf(body) === input.redeliveryOf)
    if (earlier) {
      this.emit(earlier)
      return idOf(earlier.body) ?? ''
    }
    const timestamp = this.now()
    const data = this.#dataOf(input, timestamp)
    const edited = /^\d+/.exec(input.editOf ?? '')
    const body = {
      account: NUMBER,
      envelope: {
        source: input.isOwn ? NUMBER : ADA.number,
        sourceNumber: input.isOwn ? NUMBER : ADA.number,
        sourceUuid: input.isOwn ? 'b0b0b0b0-0000-4000-8000-000000000000' : ADA.uuid,
        sourceName: 'Ada',
        sourceDevice: 1,
        timestamp,
        serverReceivedTimestamp: timestamp,
        serverDeliveredTimestamp: timestamp,
        ...(edited
          ? { editMessage: { targetSentTimestamp: Number(edited[0]), dataMessage: data } }
          : { dataMessage: data }),
      },
    }
    this.tell(body)
    return input.editOf ?? `${timestamp}:${ADA.uuid}`
  }
  /** Tells of anything. */
  tell(body: object): void {
    const event = { id: this.events.length + 1, body }
    this.events.push(event)
    this.emit(event)
  }

  #dataOf({ text, isGroup, mentionsBot, files, replyTo }: PlatformInput, timestamp: number) {
    const [, quoted, author] = /^(\d+):(.+)$/.exec(replyTo ?? '') ?? []
    return {
      timestamp,
      message: mentionsBot ? `\ufffc ${text}` : text,
      expiresInSeconds: 0,
      viewOnce: false,
      ...(mentionsBot && { mentions: [{ name: NUMBER, number: NUMBER, uuid: null, start: 0, length: 1 }] }),
      ...(isGroup && { groupInfo: { groupId: GROUP_ID, groupName: 'Kitchen', revision: 1, type: 'DELIVER' } }),
      ...(files && { attachments: files.map((file) => this.#keep(file)) }),
      ...(quoted !== undefined && {
        quote: { id: Number(quoted), authorNumber: author === NUMBER ? NUMBER : null, authorUuid: author, text: '' },
      }),
    }
  }
  #keep(file: PlatformFile) {
    const id = `${this.files.size + 1}abc.bin`
    this.files.set(id, file)
    return { contentType: file.mime, filename: file.name, id, size: file.bytes.length, width: null }
  }
  protected now(): number {
    return ++this.#time
  }

  protected abstract emit(event: StoredEvent): void
  protected abstract accept(peer: Peer, request: IncomingMessage): ReturnType<AcceptPeer>
  protected abstract handle(call: PlatformCall, response: ServerResponse): PlatformAnswer | undefined
  protected abstract decodeName(name: string): string

  #guard(call: PlatformCall, response: ServerResponse): PlatformAnswer | undefined {
    if (call.headers.authorization !== `Bearer ${TOKEN}`) return { status: 401 }
    return this.handle(call, response)
  }

  /** Shows a message, and returns its time; or why it is not taken. */
  protected take(sending: Sending): { readonly timestamp: number } | Refused {
    const fault = this.shown.takeFault()
    if (fault && fault.kind !== 'lost_answer') return { fault }
    const wrong = this.#refuse(sending)
    if (wrong !== undefined) {
      this.violations.push(wrong)
      return { wrong }
    }
    const timestamp = this.now()
    const { to = '', text, quoteTimestamp, quoteAuthor } = sending
    this.shown.show({
      id: `${timestamp}:${NUMBER}`,
      chatId: to,
      text,
      replyTo: quoteTimestamp === undefined ? undefined : `${quoteTimestamp}:${quoteAuthor}`,
      files: sending.files.map((file) => this.#readFile(file)),
      buttons: [],
    })
    return fault ? { fault } : { timestamp }
  }
  #refuse({ to, text, files, quoteTimestamp, quoteAuthor }: Sending): string | undefined {
    if (to !== ADA.uuid && to !== GROUP) return `a message to ${to}`
    if (text === '' && files.length === 0) return 'an empty message'
    if (Buffer.byteLength(text) > 2000) return 'a text that becomes a file'
    if ((quoteTimestamp === undefined) !== (quoteAuthor === undefined)) return 'a quote without an author'
    if (files.some((file) => !/^data:[^;,]+;filename=[^;,=]+;base64,[A-Za-z0-9+/=]+$/.test(file))) return 'a file'
    return undefined
  }
  #readFile(uri: string): PlatformFile {
    const [, mime = '', name = '', data = ''] = /^data:([^;]+);filename=([^;]+);base64,(.+)$/.exec(uri) ?? []
    return { kind: fileKind(mime), name: this.decodeName(name), mime, bytes: Buffer.from(data, 'base64') }
  }
  protected remove(timestamp: unknown): number {
    this.shown.remove(`${String(timestamp)}:${NUMBER}`)
    return this.now()
  }
}

function idOf(body: object): string | undefined {
  const { envelope } = body as { envelope?: { timestamp: number; sourceUuid: string } }
  return envelope && `${envelope.timestamp}:${envelope.sourceUuid}`
}

interface RpcCall {
  readonly jsonrpc?: string
  readonly id?: string
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
}

/** `signal-cli daemon --http`, for one number or several. Numbers its events, and sends again what was missed. */
export class FakeSignalDaemon extends FakeSignal {
  readonly redelivers = true
  /** A daemon for one number has no list of accounts. */
  isSingle = false

  static async start(): Promise<FakeSignalDaemon> {
    return new FakeSignalDaemon().listen()
  }

  protected emit(event: StoredEvent): void {
    this.listener.value?.send(event)
  }
  protected accept(): number {
    return 1008
  }
  protected decodeName(name: string): string {
    return decodeURIComponent(name)
  }

  protected handle(call: PlatformCall, response: ServerResponse): PlatformAnswer | undefined {
    const { pathname, searchParams } = call.url
    if (pathname === '/api/v1/events') return this.#stream(call, searchParams.get('account'), response)
    if (pathname !== '/api/v1/rpc') return { status: 404 }
    const { jsonrpc, id, method = '', params = {} } = (call.json ?? {}) as RpcCall
    if (jsonrpc !== '2.0' || id === undefined) return failed(id, -32_600, 'method field must be set')
    const result = this.#call(method, params, response)
    return result && ('code' in result ? failed(id, result.code, result.message, result.data) : answered(id, result))
  }

  #call(method: string, params: NonNullable<RpcCall['params']>, response: ServerResponse): RpcResult | undefined {
    if (method === 'version') return { result: { version: '0.14.0' } }
    if (method === 'listAccounts')
      return this.isSingle
        ? { code: -32_601, message: 'Method not implemented' }
        : { result: [{ number: NUMBER }, { number: '+4930777777' }] }
    if (params['account'] !== NUMBER) return { code: -32_602, message: 'Specified account does not exist' }
    const to = this.#chatOf(params)
    switch (method) {
      case 'send':
        return this.#send(params, to, response)
      case 'sendTyping':
        this.typing.push(to ?? '')
        return { result: {} }
      case 'sendReaction':
        this.reactions.push({
          messageId: `${String(params['targetTimestamp'])}:${String(params['targetAuthor'])}`,
          emoji: String(params['emoji']),
        })
        return { result: { timestamp: this.now(), results: [] } }
      case 'remoteDelete':
        return { result: { timestamp: this.remove(params['targetTimestamp']), results: [] } }
      case 'getAttachment': {
        const file = to === undefined ? undefined : this.files.get(String(params['id']))
        if (!file) return { code: -1, message: 'Could not find attachment' }
        return { result: { data: Buffer.from(file.bytes).toString('base64') } }
      }
      default:
        return { code: -32_601, message: 'Method not implemented' }
    }
  }

  #chatOf({ recipient, groupId }: NonNullable<RpcCall['params']>): string | undefined {
    if (typeof groupId === 'string') return `group.${groupId}`
    const [first] = [recipient].flat()
    return typeof first === 'string' ? first : undefined
  }

  #send(
    params: NonNullable<RpcCall['params']>,
    to: string | undefined,
    response: ServerResponse,
  ): RpcResult | undefined {
    const taken = this.take({
      to,
      text: String(params['message'] ?? ''),
      files: (params['attachments'] ?? []) as string[],
      quoteTimestamp: params['quoteTimestamp'] as number | undefined,
      quoteAuthor: params['quoteAuthor'] as string | undefined,
    })
    if ('timestamp' in taken) return { result: { ...taken, results: [{ type: 'SUCCESS' }] } }
    if ('wrong' in taken) return { code: -1, message: taken.wrong }
    return this.#failure(taken.fault, response)
  }
  #failure(fault: PlatformFault, response: ServerResponse): RpcResult | undefined {
    const results = (type: string, more = {}) => ({ response: { timestamp: 1, results: [{ type, ...more }] } })
    switch (fault.kind) {
      case 'rate_limit': {
        const pause = fault.retryAfterSecs === undefined ? {} : { retryAfterSeconds: fault.retryAfterSecs }
        const data = results('RATE_LIMIT_FAILURE', { token: 'challenge', ...pause })
        return { code: -5, message: 'Failed to send message due to rate limiting', data }
      }
      case 'server_error':
        return { code: -1, message: 'Failed to send message', data: results('NETWORK_FAILURE') }
      case 'permanent':
        return { code: -1, message: 'Failed to send message', data: results('UNREGISTERED_FAILURE') }
      case 'auth':
        return { code: -32_603, message: 'Failed: [401] Authorization failed! (AuthorizationFailedException)' }
      default:
        resetConnection(response)
        return undefined
    }
  }

  #stream(call: PlatformCall, account: string | null, response: ServerResponse): PlatformAnswer | undefined {
    if (account !== NUMBER) return { status: 400 }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const send = ({ id, body }: StoredEvent): void => {
      response.write(`id:${id}\nevent:receive\ndata:${JSON.stringify(body)}\n\n`)
    }
    response.write(':\n')
    const last = call.headers['last-event-id']
    if (last !== undefined) for (const event of this.events) if (event.id > (Number(last) || 0)) send(event)
    const listener = { send, cut: () => void response.destroy() }
    this.listener.set(listener)
    response.on('close', () => this.listener.remove(listener))
    return undefined
  }
}

type RpcResult =
  | { readonly result: unknown }
  | { readonly code: number; readonly message: string; readonly data?: unknown }
const answered = (id: string | undefined, { result }: { readonly result: unknown }): PlatformAnswer => ({
  status: 200,
  body: { jsonrpc: '2.0', result, id },
})
const failed = (id: string | undefined, code: number, message: string, data: unknown = null): PlatformAnswer => ({
  status: 200,
  body: { jsonrpc: '2.0', error: { code, message, data }, id: id ?? null },
})

/** The container signal-cli-rest-api. In the mode `json-rpc` it tells of messages by WebSocket, else when it is asked. */
export class FakeSignalRest extends FakeSignal {
  readonly redelivers = false
  readonly mode: 'json-rpc' | 'normal'
  #asked = 0

  static async start(mode: 'json-rpc' | 'normal' = 'json-rpc'): Promise<FakeSignalRest> {
    return new FakeSignalRest(mode).listen()
  }
  constructor(mode: 'json-rpc' | 'normal') {
    super()
    this.mode = mode
  }

  override get config() {
    return { ...super.config, server: 'signal-cli-rest-api' }
  }
  protected emit(event: StoredEvent): void {
    this.listener.value?.send(event)
  }
  protected decodeName(name: string): string {
    return name
  }
  protected accept(peer: Peer, request: IncomingMessage): ReturnType<AcceptPeer> {
    const isRight = request.url === `/v1/receive/${encodeURIComponent(NUMBER)}`
    if (!isRight || request.headers.authorization !== `Bearer ${TOKEN}`) return 1008
    const listener = { send: ({ body }: StoredEvent) => peer.send(body), cut: () => peer.cut() }
    this.listener.set(listener)
    return {
      frame: () => this.violations.push('a frame of a client'),
      closed: () => this.listener.remove(listener),
    }
  }

  protected handle(call: PlatformCall, response: ServerResponse): PlatformAnswer | undefined {
    const path = decodeURIComponent(call.url.pathname)
    const body = (call.json ?? {}) as Readonly<Record<string, unknown>>
    const to = this.#chatOf(String(body['recipient'] ?? ''))
    switch (`${call.method} ${path.replace(`/${NUMBER}`, '')}`) {
      case 'GET /v1/about':
        return { status: 200, body: { versions: ['v1', 'v2'], build: 2, mode: this.mode, version: '0.95' } }
      case 'GET /v1/accounts':
        return { status: 200, body: [NUMBER] }
      case 'GET /v1/receive':
        return this.#receive()
      case 'POST /v2/send':
        return this.#send(body, response)
      case 'PUT /v1/typing-indicator':
        this.typing.push(to)
        return { status: 204 }
      case 'POST /v1/reactions':
        this.reactions.push({
          messageId: `${String(body['timestamp'])}:${String(body['target_author'])}`,
          emoji: String(body['reaction']),
        })
        return { status: 204 }
      case 'DELETE /v1/remote-delete':
        return { status: 201, body: { timestamp: String(this.remove(body['timestamp'])) } }
      default:
        return this.#readFile(path)
    }
  }

  #readFile(path: string): PlatformAnswer {
    const file = this.files.get(path.replace('/v1/attachments/', ''))
    if (file) return { status: 200, body: file.bytes, headers: { 'content-type': file.mime } }
    return { status: 404, body: { error: 'No attachment with that name found' } }
  }

  #receive(): PlatformAnswer {
    if (this.mode === 'json-rpc') return { status: 400, body: { error: 'not a websocket handshake' } }
    const body = this.events.slice(this.#asked).map((event) => event.body)
    this.#asked = this.events.length
    return { status: 200, body }
  }

  /** Ids of groups are base64 twice. */
  #chatOf(recipient: string): string {
    const [, id] = /^group\.(.+)$/.exec(recipient) ?? []
    if (id === undefined) return recipient
    const inner = Buffer.from(id, 'base64').toString()
    return Buffer.from(inner, 'base64').length === 32 ? `group.${inner}` : ''
  }

  #send(body: Readonly<Record<string, unknown>>, response: ServerResponse): PlatformAnswer | undefined {
    const { number, recipients = [], message = '' } = body
    if (number !== NUMBER) return { status: 400, body: { error: 'Specified account does not exist' } }
    const taken = this.take({
      to: this.#chatOf(String((recipients as string[])[0] ?? '')),
      text: String(message),
      files: (body['base64_attachments'] ?? []) as string[],
      quoteTimestamp: body['quote_timestamp'] as number | undefined,
      quoteAuthor: body['quote_author'] as string | undefined,
    })
    if ('timestamp' in taken) return { status: 201, body: [{ timestamp: String(taken.timestamp) }] }
    if ('wrong' in taken) return { status: 400, body: { error: taken.wrong } }
    return this.#failure(taken.fault, response)
  }
  #failure(fault: PlatformFault, response: ServerResponse): PlatformAnswer | undefined {
    switch (fault.kind) {
      case 'rate_limit': {
        const pause = fault.retryAfterSecs === undefined ? {} : { 'retry-after': String(fault.retryAfterSecs) }
        return {
          status: 429,
          body: { error: 'rate limited', challenge_tokens: ['t'], account: NUMBER },
          headers: pause,
        }
      }
      case 'server_error':
        return { status: 400, body: { error: 'Failed to send message: timeout (IOException)' } }
      case 'permanent':
        return { status: 400, body: { error: 'The user +331 is not registered.' } }
      case 'auth':
        return { status: 400, body: { error: `User ${NUMBER} is not registered.` } }
      default:
        return resetConnection(response)
    }
  }
}
