import { createHmac } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { allFaults, answerFault, fileKind } from './faults.ts'
import { resetConnection, Shown } from './http.ts'
import type { PlatformAnswer, PlatformCall } from './http.ts'
import type {
  FakePlatform,
  PlatformFault,
  PlatformFile,
  PlatformInput,
  PlatformRequest,
  WebhookTarget,
} from './platform.ts'
import { Presence, startSocketServer } from './sockets.ts'
import type { Peer, PeerHandlers } from './sockets.ts'

const TOKEN = 'xoxb-fake-bot-token'
const APP_TOKEN = 'xapp-fake-app-token'
const SIGNING_SECRET = 'fake-signing-secret'
const BOT = 'U00BOT'
const ADA = 'U00ADA'
const DIRECT = 'D0001'
const GROUP = 'C0001'
const THREAD = '1763640000.000100'
const EMOJI: Readonly<Record<string, string>> = { '+1': '👍', eyes: '👀', white_check_mark: '✅' }

interface Envelope {
  readonly envelope_id: string
  readonly type: string
  readonly payload: unknown
}
interface Body {
  channel?: string
  ts?: string
  text?: string
  thread_ts?: string
  blocks?: { type: string; text?: { text: string }; elements?: { text: { text: string }; value: string }[] }[]
  timestamp?: string
  name?: string
  files?: { id: string; title?: string }[]
  channel_id?: string
  initial_comment?: string
  metadata?: unknown
}

export interface FakeSlack extends FakePlatform {
  /** Envelopes that were acknowledged, in order. */
  readonly acknowledged: readonly string[]
  /** Sockets that were opened. */
  readonly opened: number
  /** Whether the app may read what is in chats. */
  hasHistoryScope: boolean
  /** Sockets that are open. */
  readonly open: number
  /** Tells the adapter that the socket will be closed. */
  announceEnd(reason: string): void
  /** What Slack sends to the webhook when its address is entered. */
  verifyUrl(): Promise<{ readonly status: number; readonly body: string }>
}

/** Slack's Web API with Socket Mode, or with the Events API. Source: https://docs.slack.dev/apis/events-api */
export async function startFakeSlack(options: { readonly webhook?: boolean } = {}): Promise<FakeSlack> {
  const fake = new Slack(options.webhook ?? false)
  const server = await startSocketServer(
    (call, response) => fake.handle(call, response),
    (peer, request) => fake.accept(peer, request.url ?? ''),
  )
  fake.origin = server.origin
  return Object.assign(fake, { [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() })
}

class Slack implements Omit<FakeSlack, typeof Symbol.asyncDispose> {
  readonly channel = 'slack'
  readonly secrets = [TOKEN, APP_TOKEN, SIGNING_SECRET]
  readonly chats = { direct: DIRECT, group: GROUP, thread: THREAD }
  readonly person = ADA
  readonly redelivers = true
  readonly faults = allFaults
  readonly removes = true
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  readonly acknowledged: string[] = []
  readonly disconnect?: () => Promise<void>
  readonly waitForListener?: () => Promise<void>
  readonly forgeries?: () => readonly PlatformRequest[]
  origin = ''
  opened = 0
  hasHistoryScope = true
  readonly #isWebhook: boolean
  readonly #shown = new Shown()
  readonly #events = new Map<string, unknown[]>()
  readonly #files = new Map<string, PlatformFile>()
  readonly #metadata = new Map<string, unknown>()
  readonly #uploads = new Map<string, PlatformFile>()
  readonly #tickets = new Set<string>()
  readonly #waiting: Envelope[] = []
  readonly #peers = new Set<Peer>()
  readonly #listener = new Presence<Peer>()
  #webhook: WebhookTarget | undefined
  #next = 1

  constructor(isWebhook: boolean) {
    this.#isWebhook = isWebhook
    if (isWebhook) {
      this.forgeries = () => this.#forgeries()
      return
    }
    this.waitForListener = async () => {
      await this.#listener.wait()
    }
    this.disconnect = async () => {
      this.#listener.set(undefined)
      for (const peer of this.#peers) peer.cut()
    }
  }

  get config() {
    const base = { token: TOKEN, base_url: `${this.origin}/api` }
    return this.#isWebhook ? { ...base, signing_secret: SIGNING_SECRET } : { ...base, app_token: APP_TOKEN }
  }
  get wrongConfig() {
    return { ...this.config, token: 'xoxb-wrong' }
  }
  get sent() {
    return this.#shown.sent
  }
  get open() {
    return this.#peers.size
  }
  waitForSent = (count: number) => this.#shown.waitForSent(count)
  fail = (fault: PlatformFault) => this.#shown.fail(fault)
  setWebhook = (target: WebhookTarget) => {
    this.#webhook = target
  }

  announceEnd(reason: string): void {
    this.#listener.value?.send({ type: 'disconnect', reason, debug_info: { host: 'applink' } })
  }
  verifyUrl() {
    const body = JSON.stringify({ type: 'url_verification', token: 'x', challenge: 'prove it' })
    return this.#post(body, 'application/json')
  }

  async deliver(input: PlatformInput): Promise<string> {
    if (input.button !== undefined) return this.#press(input)
    const channel = input.isGroup || input.threadId !== undefined ? GROUP : DIRECT
    const id = input.redeliveryOf ?? `${channel}/${this.#ts()}`
    const events = this.#events.get(id) ?? this.#eventsOf(input, channel, id)
    this.#events.set(id, events)
    for (const event of events)
      await this.#push('events_api', {
        token: 'x',
        team_id: 'T0001',
        api_app_id: 'A0001',
        type: 'event_callback',
        event_id: `Ev${this.#next++}`,
        event_time: 1_763_640_000,
        event,
      })
    return input.editOf ?? id
  }

  /** What mentions the bot in a channel comes twice. */
  #eventsOf(input: PlatformInput, channel: string, id: string): unknown[] {
    const [, ts = ''] = id.split('/')
    const escaped = input.text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
    const content = {
      type: 'message',
      user: input.isOwn ? BOT : ADA,
      ...(input.isOwn && { bot_id: 'B00BOT' }),
      text: input.mentionsBot ? `<@${BOT}> ${escaped}` : escaped,
      ts: input.editOf?.split('/')[1] ?? ts,
      team: 'T0001',
      ...(input.threadId !== undefined && { thread_ts: input.threadId, parent_user_id: ADA }),
      ...(input.files && { files: input.files.map((file) => this.#keep(file)) }),
    }
    const place = { channel, channel_type: channel === DIRECT ? 'im' : 'channel', event_ts: ts }
    if (input.editOf !== undefined) {
      const previous = { ...content, text: 'as it was' }
      const message = { ...content, edited: { user: ADA, ts } }
      return [{ type: 'message', subtype: 'message_changed', ...place, ts, message, previous_message: previous }]
    }
    const message = { ...content, ...place, ...(input.files && { subtype: 'file_share' }) }
    return input.mentionsBot && channel === GROUP ? [message, { ...message, type: 'app_mention' }] : [message]
  }

  async #press(input: PlatformInput): Promise<string> {
    const ts = this.#ts()
    const channel = input.isGroup ? GROUP : DIRECT
    const action = { type: 'button', action_id: 'choice-0', block_id: 'b', value: input.button, action_ts: ts }
    await this.#push('interactive', {
      type: 'block_actions',
      user: { id: ADA, username: 'ada', name: 'ada', team_id: 'T0001' },
      channel: { id: channel, name: 'general' },
      message: { type: 'message', ts: this.sent.at(-1)?.id.split('/')[1] ?? ts, text: '' },
      actions: [action],
    })
    return `${channel}/${ts}/choice-0`
  }

  #keep(file: PlatformFile) {
    const id = `F${this.#next++}`
    this.#files.set(id, file)
    const url = `${this.origin}/files-pri/${id}`
    return { id, name: file.name, mimetype: file.mime, size: file.bytes.byteLength, mode: 'hosted', url_private: url }
  }

  #ts(): string {
    return `1763640001.${String(this.#next++).padStart(6, '0')}`
  }

  // Deliveries

  async #push(type: string, payload: unknown): Promise<void> {
    if (!this.#isWebhook) {
      const envelope = { envelope_id: `env-${this.#next++}`, type, payload, accepts_response_payload: false }
      this.#waiting.push(envelope)
      this.#listener.value?.send(envelope)
      return
    }
    const isEvent = type === 'events_api'
    const body = isEvent
      ? JSON.stringify(payload)
      : new URLSearchParams({ payload: JSON.stringify(payload) }).toString()
    const { status } = await this.#post(body, isEvent ? 'application/json' : 'application/x-www-form-urlencoded')
    if (status !== 200) throw new Error(`the webhook answered ${status}`)
  }

  async #post(body: string, type: string) {
    const target = this.#webhook
    if (!target) throw new Error('no webhook')
    return target(signed(body, type, Math.floor(Date.now() / 1000)))
  }

  #forgeries(): readonly PlatformRequest[] {
    const event = { type: 'message', user: ADA, text: 'forged', ts: '1.000001', channel: DIRECT, channel_type: 'im' }
    const body = JSON.stringify({ type: 'event_callback', event })
    const now = Math.floor(Date.now() / 1000)
    const good = signed(body, 'application/json', now)
    const { 'x-slack-signature': _, ...unsigned } = good.headers
    return [
      { ...good, headers: unsigned },
      { ...good, headers: { ...good.headers, 'x-slack-signature': 'v0=00' } },
      { ...good, body: Buffer.from(body.replace('forged', 'changed')) },
      signed(body, 'application/json', now - 600),
      { ...good, headers: { ...good.headers, 'x-slack-request-timestamp': '' } },
    ]
  }

  // Socket Mode

  accept(peer: Peer, url: string): PeerHandlers | number {
    const ticket = new URL(url, this.origin).searchParams.get('ticket') ?? ''
    if (!this.#tickets.delete(ticket)) {
      this.violations.push('a socket without a ticket, or with a used one')
      return 4001
    }
    this.opened++
    this.#peers.add(peer)
    peer.send({ type: 'hello', num_connections: this.#peers.size, connection_info: { app_id: 'A0001' } })
    this.#listener.set(peer)
    for (const envelope of this.#waiting) peer.send({ ...envelope, retry_attempt: 1, retry_reason: 'timeout' })
    return {
      frame: (frame) => this.#acknowledge((frame as { envelope_id?: string } | undefined)?.envelope_id),
      closed: () => {
        this.#peers.delete(peer)
        this.#listener.remove(peer)
      },
    }
  }

  #acknowledge(id: string | undefined): void {
    const index = this.#waiting.findIndex(({ envelope_id: known }) => known === id)
    if (index === -1 && !this.acknowledged.includes(id ?? '')) this.violations.push('an acknowledgement of nothing')
    if (index === -1) return
    this.#waiting.splice(index, 1)
    this.acknowledged.push(id ?? '')
  }

  // The Web API

  async handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { pathname } = call.url
    const upload = /^\/upload\/(F\d+)$/.exec(pathname)?.[1]
    if (upload !== undefined) return this.#take(call, upload)
    const file = /^\/files-pri\/(F\d+)$/.exec(pathname)?.[1]
    if (file !== undefined) return this.#download(call, file)
    const method = pathname.replace('/api/', '')
    const isConnect = method === 'apps.connections.open'
    if (call.headers.authorization !== `Bearer ${isConnect ? APP_TOKEN : TOKEN}`) return failed('invalid_auth')
    const type = call.headers['content-type'] ?? ''
    const isForm = type.startsWith('application/x-www-form-urlencoded')
    const fields = isForm ? new URLSearchParams(Buffer.from(call.bytes).toString()) : new URLSearchParams()
    const body = (call.json ?? valuesOf(fields)) as Body
    switch (method) {
      case 'auth.test':
        return done({ user_id: BOT, user: 'svc', bot_id: 'B00BOT', team: 'Test', team_id: 'T0001' })
      case 'apps.connections.open':
        return this.#openSocket()
      case 'chat.postMessage':
      case 'files.completeUploadExternal':
        return this.#send(method, body, response)
      case 'conversations.history':
      case 'conversations.replies':
        return isForm ? this.#history(fields) : this.#refuse('JSON for a method that takes none')
      case 'chat.update':
        return this.#update(body)
      case 'chat.delete':
        return this.#shown.remove(`${body.channel}/${body.ts}`) ? done({}) : failed('message_not_found')
      case 'reactions.add':
        return this.#react(body)
      case 'users.info':
        return isForm ? this.#user(fields.get('user')) : this.#refuse('JSON for a method that takes none')
      case 'files.getUploadURLExternal':
        return isForm ? this.#prepareUpload(fields) : this.#refuse('JSON for a method that takes none')
      case 'files.info':
        return this.#describeFile(fields.get('file') ?? '')
      default:
        return this.#refuse(`the method ${method}`)
    }
  }

  #openSocket(): PlatformAnswer {
    const ticket = `ticket-${this.#next++}`
    this.#tickets.add(ticket)
    return done({ url: `${this.origin.replace('http', 'ws')}/link/?ticket=${ticket}&app_id=A0001` })
  }

  #send(method: string, body: Body, response: ServerResponse): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer')
      return answerFault(fault, response, {
        rate_limit: (seconds) => ({
          status: 429,
          body: { ok: false, error: 'ratelimited' },
          ...(seconds !== undefined && { headers: { 'retry-after': String(seconds) } }),
        }),
        server_error: failed('internal_error'),
        permanent: failed('is_archived'),
        auth: failed('token_revoked'),
      })
    const answer = method === 'chat.postMessage' ? this.#show(body) : this.#complete(body)
    return fault ? resetConnection(response) : answer
  }

  #show({ channel = '', text = '', thread_ts: threadId, blocks = [], metadata }: Body): PlatformAnswer {
    if (channel !== DIRECT && channel !== GROUP) return failed('channel_not_found')
    if (text === '' && blocks.length === 0) return this.#refuse('a message without a text', 'no_text')
    if (text.length > 40_000) return this.#refuse('a text that is too long', 'msg_too_long')
    if (threadId !== undefined && !/^\d+\.\d{6}$/.test(threadId))
      return this.#refuse('a thread that is none', 'invalid_thread_ts')
    if (blocks.some((block) => (block.text?.text.length ?? 0) > 3000 || (block.elements?.length ?? 0) > 25))
      return this.#refuse('a block that is too long', 'invalid_blocks')
    const buttons = blocks.flatMap(({ elements = [] }) =>
      elements.map((element) => ({ label: element.text.text, value: element.value })),
    )
    const ts = this.#ts()
    this.#shown.show({ id: `${channel}/${ts}`, chatId: channel, threadId, text, files: [], buttons })
    this.#metadata.set(`${channel}/${ts}`, metadata)
    return done({ channel, ts, message: { text, ts } })
  }

  /** The newest first, without what apps keep with messages unless they ask for it. */
  #history(fields: URLSearchParams): PlatformAnswer {
    if (!this.hasHistoryScope) return { status: 200, body: { ok: false, error: 'missing_scope', needed: 'im:history' } }
    const [channel, thread] = [fields.get('channel'), fields.get('ts') ?? undefined]
    const messages = this.#shown.sent
      .filter(({ chatId, threadId }) => chatId === channel && threadId === thread)
      .map(({ id, text }) => ({
        ts: id.split('/')[1],
        text,
        ...(fields.get('include_all_metadata') === 'true' && { metadata: this.#metadata.get(id) }),
      }))
    return done({ messages: messages.toReversed() })
  }

  #complete({ files = [], channel_id: channel = '', thread_ts: threadId, initial_comment: text = '' }: Body) {
    if (channel !== DIRECT && channel !== GROUP) return failed('channel_not_found')
    const uploaded = files.flatMap(({ id }) => this.#uploads.get(id) ?? [])
    if (files.length === 0 || uploaded.length < files.length) return this.#refuse('files that were not uploaded')
    const id = `${channel}/${this.#ts()}`
    this.#shown.show({ id, chatId: channel, threadId, text, files: uploaded, buttons: [] })
    return done({ files: files.map(({ id, title }) => ({ id, title })) })
  }

  #update({ channel, ts, text = '' }: Body): PlatformAnswer {
    return this.#shown.edit(`${channel}/${ts}`, text) ? done({ channel, ts, text }) : failed('message_not_found')
  }

  #react({ channel, timestamp, name = '' }: Body): PlatformAnswer {
    const emoji = EMOJI[name]
    if (emoji === undefined) return this.#refuse(`the emoji ${name}`, 'invalid_name')
    const reaction = { messageId: `${channel}/${timestamp}`, emoji }
    if (this.reactions.some(({ messageId }) => messageId === reaction.messageId)) return failed('already_reacted')
    this.reactions.push(reaction)
    return done({})
  }

  #user(id: string | null): PlatformAnswer {
    if (id !== ADA) return failed('user_not_found')
    return done({
      user: { id, name: 'ada', real_name: 'Ada L.', profile: { display_name: 'Ada', real_name: 'Ada L.' } },
    })
  }

  #prepareUpload(fields: URLSearchParams): PlatformAnswer {
    const id = `F${this.#next++}`
    const name = fields.get('filename') ?? ''
    if (name === '' || !/^[1-9]\d*$/.test(fields.get('length') ?? '')) return this.#refuse('an upload without a length')
    this.#uploads.set(id, { kind: 'file', name, mime: '', bytes: new Uint8Array(Number(fields.get('length'))) })
    return done({ upload_url: `${this.origin}/upload/${id}`, file_id: id })
  }

  /** The bytes as they are, or as the file of a form. */
  async #take(call: PlatformCall, id: string): Promise<PlatformAnswer> {
    const expected = this.#uploads.get(id)
    if (call.headers.authorization !== undefined) this.violations.push('the token was sent to the upload server')
    const type = call.headers['content-type'] ?? ''
    const [file] = type.startsWith('multipart/') ? [...(await call.form()).values()] : []
    const bytes = file instanceof File ? await file.bytes() : call.bytes
    if (!expected || expected.bytes.length !== bytes.length) return { status: 400 }
    this.#uploads.set(id, { ...expected, kind: fileKind(type), mime: type, bytes })
    return { status: 200 }
  }

  #describeFile(id: string): PlatformAnswer {
    const file = this.#files.get(id)
    if (!file) return failed('file_not_found')
    const url = `${this.origin}/files-pri/${id}`
    return done({ file: { id, mimetype: file.mime, url_private: url, url_private_download: url } })
  }

  #download(call: PlatformCall, id: string): PlatformAnswer {
    const file = this.#files.get(id)
    // Whoever is not signed in gets the page for signing in.
    if (!file || call.headers.authorization !== `Bearer ${TOKEN}`)
      return { status: 200, body: Buffer.from('<html>'), headers: { 'content-type': 'text/html' } }
    return { status: 200, body: file.bytes, headers: { 'content-type': file.mime } }
  }

  #refuse(what: string, error = 'invalid_arguments'): PlatformAnswer {
    this.violations.push(what)
    return failed(error)
  }
}

/** Lists stand in a form as JSON. */
function valuesOf(fields: URLSearchParams): object {
  const values = [...fields].map(([name, value]) => [name, /^[[{]/.test(value) ? JSON.parse(value) : value])
  return Object.fromEntries(values)
}

const failed = (error: string): PlatformAnswer => ({ status: 200, body: { ok: false, error } })
const done = (body: object): PlatformAnswer => ({ status: 200, body: { ok: true, ...body } })

function signed(text: string, type: string, time: number): PlatformRequest {
  const signature = createHmac('sha256', SIGNING_SECRET).update(`v0:${time}:${text}`).digest('hex')
  return {
    method: 'POST',
    headers: {
      'content-type': type,
      'x-slack-request-timestamp': String(time),
      'x-slack-signature': `v0=${signature}`,
    },
    body: Buffer.from(text),
  }
}
