import { createHmac, randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { allFaults, answerFault, fileKind } from './faults.ts'
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
import { Polls } from './polls.ts'

const SECRET = 'fakenextcloudsecret0123456789abcdef0123456789abcdef'
const PASSWORD = 'fake-nextcloud-app-password'
const USER = 'svc'
const BOT_NAME = 'Helper'
const BOT = `bots/bot-${'a'.repeat(40)}`
const DIRECT = { token: 'd1rect01', type: 1, name: '["ada","svc"]', displayName: 'Ada' }
const GROUP = { token: 'gr0up001', type: 2, name: 'harbour', displayName: 'harbour' }
const MAX_CHARACTERS = 32_000
const START_SECS = 1_763_640_000

interface Message {
  readonly id: number
  readonly token: string
  readonly actorType: string
  readonly actorId: string
  readonly actorDisplayName: string
  readonly timestamp: number
  readonly systemMessage: string
  readonly messageType: string
  readonly message: string
  readonly messageParameters: object
  readonly referenceId: string
  readonly parent?: object
}
/** Who writes what, beside what all platforms have. */
export interface Written extends PlatformInput {
  readonly actor?: readonly [type: string, id: string, name: string]
  readonly parameters?: object
  readonly token?: string
  readonly system?: string
}
interface Body {
  message?: string
  replyTo?: number
  referenceId?: string
  reaction?: string
  shareType?: number
  shareWith?: string
  path?: string
}

/** Nextcloud with Talk. Source: https://nextcloud-talk.readthedocs.io, and the code of github.com/nextcloud/spreed. */
export class FakeNextcloud implements FakePlatform {
  readonly channel = 'nextcloud'
  readonly mode: 'bot' | 'user'
  readonly chats = { direct: DIRECT.token, group: GROUP.token }
  readonly person = 'users/ada'
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  readonly requests: string[] = []
  readonly #shown = new Shown()
  readonly #rooms: { token: string; type: number; name: string; displayName: string }[] = [DIRECT, GROUP]
  readonly #messages: Message[] = []
  readonly #folders = new Set<string>()
  readonly #files = new Map<string, PlatformFile>()
  protected readonly polls = new Polls()
  #server: PlatformServer | undefined
  #webhook: WebhookTarget | undefined
  #last: PlatformRequest | undefined
  #next = 100
  #isAway = false
  #hasTalk = true

  constructor(mode: 'bot' | 'user') {
    this.mode = mode
  }
  async listen(): Promise<this> {
    this.#server = await startPlatformServer((call, response) => this.#handle(call, response))
    return this
  }

  get #isBot(): boolean {
    return this.mode === 'bot'
  }
  get secrets() {
    return this.#isBot ? [SECRET] : [PASSWORD, Buffer.from(`${USER}:${PASSWORD}`).toString('base64')]
  }
  get origin(): string {
    return this.#server?.origin ?? ''
  }
  get config() {
    return this.#isBot
      ? { mode: 'bot', token: SECRET, base_url: this.origin, bot_name: BOT_NAME, direct_rooms: [DIRECT.token] }
      : { mode: 'user', username: USER, token: PASSWORD, base_url: `${this.origin}/` }
  }
  get redelivers(): boolean {
    return !this.#isBot
  }
  get removes(): boolean {
    return !this.#isBot
  }
  get lacks(): ReadonlySet<'edit' | 'replies' | 'attachments'> {
    return new Set(this.#isBot ? (['edit', 'replies', 'attachments'] as const) : [])
  }
  /** For a bot, 401 is about one conversation. */
  get faults(): ReadonlySet<PlatformFault['kind']> {
    return this.#isBot ? allFaults.difference(new Set(['auth'])) : allFaults
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
    this.#webhook = target
  }
  /** The next poll fails, and those after it do not. */
  protected failPoll(): void {
    this.#isAway = true
    this.polls.hurry()
  }
  removeTalk(): void {
    this.#hasTalk = false
  }
  addRoom(token: string, type: number): void {
    this.#rooms.push({ token, type, name: token, displayName: token })
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.polls.dispose()
    await this.#server?.[Symbol.asyncDispose]()
  }

  deliver = (input: PlatformInput) => this.write(input)

  /** `isQuiet`: it waits for the next question of the adapter, which nothing hurries. */
  async write(input: Written, { isQuiet = false } = {}): Promise<string> {
    const known = this.#messages.find(({ id }) => String(id) === input.redeliveryOf)
    if (known) return String(known.id)
    const edited = this.#messages.findIndex(({ id }) => String(id) === input.editOf)
    if (edited !== -1) return this.#edit(edited, input.text)
    const parent = this.#messages.find(({ id }) => String(id) === input.replyTo)
    const [actorType, actorId, actorDisplayName] = input.isOwn ? this.#self() : (input.actor ?? ['users', 'ada', 'Ada'])
    const files = (input.files ?? []).map((file) => this.#keep(`Talk/${this.#next++}/${file.name}`, file))
    const message = this.#add({
      token: input.token ?? (input.isGroup ? GROUP.token : DIRECT.token),
      actorType,
      actorId,
      actorDisplayName,
      message: [this.#mention(input), ...files.map((_, index) => `{file${index}}`)].join('\n'),
      systemMessage: input.system ?? '',
      messageParameters: {
        ...(input.mentionsBot && !this.#isBot && { 'mention-user1': { type: 'user', id: USER, name: 'Svc' } }),
        ...Object.fromEntries(files.map((file, index) => [`file${index}`, file])),
        ...input.parameters,
      },
      ...(parent && { parent }),
    })
    if (this.#isBot && !input.isOwn) await this.#call(message)
    if (!isQuiet) this.polls.hurry()
    return String(message.id)
  }

  #mention({ text, mentionsBot }: PlatformInput): string {
    if (!mentionsBot) return text
    return this.#isBot ? `@${BOT_NAME}, ${text}` : `{mention-user1} ${text}`
  }
  #self(): readonly [string, string, string] {
    return this.#isBot ? ['bots', BOT.slice('bots/'.length), BOT_NAME] : ['users', USER, 'Svc']
  }
  async #edit(index: number, text: string): Promise<string> {
    const earlier = this.#messages[index]
    if (!earlier) return ''
    const now = { ...earlier, message: text }
    this.#messages[index] = now
    this.#add({ ...earlier, message: '{actor} edited a message', systemMessage: 'message_edited', parent: now })
    this.polls.hurry()
    return String(earlier.id)
  }
  #add(given: Partial<Message> & Pick<Message, 'token' | 'actorType' | 'actorId' | 'message'>): Message {
    const id = this.#next++
    const message: Message = {
      actorDisplayName: '',
      systemMessage: '',
      messageType: 'comment',
      messageParameters: {},
      referenceId: '',
      ...given,
      id,
      timestamp: START_SECS + id,
    }
    this.#messages.push(message)
    return message
  }
  #keep(path: string, file: PlatformFile) {
    this.#files.set(path, file)
    const size = String(file.bytes.length)
    return {
      type: 'file',
      id: String(this.#next++),
      name: file.name,
      size,
      path,
      link: 'https://x',
      mimetype: file.mime,
    }
  }

  // The webhook of a bot

  /** The last request once more. */
  repeat(): Promise<{ readonly status: number; readonly body: string }> {
    if (!this.#webhook || !this.#last) throw new Error('There was no request')
    return this.#webhook(this.#last)
  }
  /** Sends any activity, signed. */
  async send(activity: unknown): Promise<number> {
    this.#last = this.#request(JSON.stringify(activity))
    return (await this.#webhook?.(this.#last))?.status ?? 0
  }
  async #call(message: Message): Promise<void> {
    const status = await this.send(this.#activityOf(message))
    if (status !== 200) throw new Error(`the webhook answered ${status}`)
  }
  #activityOf(message: Message) {
    const room = this.#rooms.find(({ token }) => token === message.token)
    const parent = message.parent as Message | undefined
    return {
      type: 'Create',
      actor: actorOf(message),
      object: {
        ...noteOf(message),
        ...(parent && { inReplyTo: { actor: actorOf(parent), object: noteOf(parent) } }),
      },
      target: { type: 'Collection', id: message.token, name: room?.name },
    }
  }
  #request(body: string, change: Readonly<Record<string, string>> = {}): PlatformRequest {
    const random = randomBytes(48).toString('base64')
    const signature = createHmac('sha256', SECRET)
      .update(random + body)
      .digest('hex')
    return {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-nextcloud-talk-random': random,
        'x-nextcloud-talk-signature': signature,
        'x-nextcloud-talk-backend': `${this.origin}/`,
        'ocs-apirequest': 'true',
        ...change,
      },
      body: Buffer.from(body),
    }
  }
  forgeries(): readonly PlatformRequest[] {
    if (!this.#isBot) return []
    const message = { token: GROUP.token, actorType: 'users', actorId: 'ada', message: 'forged' }
    const body = JSON.stringify(this.#activityOf({ ...message, id: 1 } as Message))
    const short = createHmac('sha256', SECRET).update(`short${body}`).digest('hex')
    return [
      { ...this.#request(body), headers: { 'content-type': 'application/json' } },
      this.#request(body, { 'x-nextcloud-talk-signature': 'f'.repeat(64) }),
      this.#request(body, { 'x-nextcloud-talk-random': randomBytes(48).toString('base64') }),
      { ...this.#request(body), body: Buffer.from(body.replace('forged', 'changed')) },
      // Another server that has the same secret.
      this.#request(body, { 'x-nextcloud-talk-backend': 'https://evil.test/' }),
      this.#request(body, { 'x-nextcloud-talk-random': 'short', 'x-nextcloud-talk-signature': short }),
    ]
  }

  // The API

  async #handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { method, url, headers } = call
    const path = decodeURI(url.pathname)
    if (headers['ocs-apirequest'] !== 'true') return this.#violation(`${path} without OCS-APIRequest`)
    this.requests.push(`${method} ${path}`)
    if (path === '/ocs/v2.php/cloud/capabilities')
      return ok({ version: {}, capabilities: this.#hasTalk ? { spreed: { features: ['bots-v1'] } } : {} })
    if (this.#isBot) return this.#handleBot(call, path, response)
    const basic = Buffer.from(`${USER}:${PASSWORD}`).toString('base64')
    if (headers.authorization !== `Basic ${basic}`) return failure(401, 'Current user is not logged in')
    if (path === '/ocs/v2.php/cloud/user') return ok({ id: USER, 'display-name': 'Svc' })
    if (path.startsWith(`/remote.php/dav/files/${USER}/`))
      return this.#dav(call, decodeURIComponent(url.pathname).slice(`/remote.php/dav/files/${USER}/`.length))
    return this.#handleUser(call, path.replace('/ocs/v2.php/apps/', ''), response)
  }

  #handleBot({ json, headers }: PlatformCall, path: string, response: ServerResponse): PlatformAnswer | undefined {
    const body = (json ?? {}) as Body
    const [, token = '', rest = '', id = ''] =
      /^\/ocs\/v2\.php\/apps\/spreed\/api\/v1\/bot\/(\w+)\/(message|reaction)\/?(\d*)$/.exec(path) ?? []
    const signed = rest === 'message' ? body.message : body.reaction
    const random = String(headers['x-nextcloud-talk-bot-random'] ?? '')
    const expected = createHmac('sha256', SECRET).update(`${random}${signed}`).digest('hex')
    if (random.length < 32) return this.#violation('a random that is too short')
    if (headers.authorization !== undefined) this.violations.push('a bot sent credentials')
    if (headers['x-nextcloud-talk-bot-signature'] !== expected || !this.#rooms.some((room) => room.token === token))
      return failure(401, '')
    if (rest === 'reaction') return this.#react(id, body)
    return this.#create(token, body, response, () => ({ ...ok(null), status: 201 }))
  }

  #handleUser(call: PlatformCall, path: string, response: ServerResponse): PlatformAnswer | undefined {
    const body = (call.json ?? {}) as Body
    const query = call.url.searchParams
    if (path === 'spreed/api/v4/room') return this.#list(query.get('modifiedSince'))
    if (path === 'files_sharing/api/v1/shares') return this.#share(body)
    const [, kind, token = '', id = ''] = /^spreed\/api\/v1\/(chat|reaction)\/(\w+)\/?(\d*)$/.exec(path) ?? []
    if (kind === undefined || !this.#rooms.some((room) => room.token === token)) return failure(404, '')
    if (kind === 'reaction') return this.#react(id, body)
    if (call.method === 'GET') return this.#read(token, query)
    if (id === '') return this.#create(token, body, response, (message) => ({ ...ok(message), status: 201 }))
    const index = this.#messages.findIndex((message) => String(message.id) === id)
    const earlier = this.#messages[index]
    if (!earlier || earlier.actorId !== USER) return failure(404, '')
    if (earlier.messageType === 'comment_deleted') return failure(405, '')
    const isEdit = call.method === 'PUT'
    this.#messages[index] = isEdit
      ? { ...earlier, message: body.message ?? '' }
      : { ...earlier, messageType: 'comment_deleted' }
    if (isEdit) this.#shown.edit(id, body.message ?? '')
    else this.#shown.remove(id)
    return ok({ id: this.#next++ })
  }

  #list(since: string | null): PlatformAnswer {
    this.polls.note()
    if (this.#isAway) {
      this.#isAway = false
      return failure(503, 'System in maintenance mode.')
    }
    const rooms = this.#rooms.map((room) => {
      const messages = this.#messages.filter(({ token }) => token === room.token)
      const last = messages.findLast(({ systemMessage }) => systemMessage !== 'message_edited')
      return { ...room, id: 1, lastActivity: last?.timestamp ?? 0, lastMessage: last ?? [] }
    })
    return ok(since === null ? rooms : rooms.filter(({ lastActivity }) => lastActivity > Number(since)))
  }

  #read(token: string, query: URLSearchParams): PlatformAnswer {
    const isFuture = query.get('lookIntoFuture') === '1'
    if (query.get('setReadMarker') !== '0' || (isFuture && query.get('timeout') !== '0'))
      return this.#violation('a list of messages that waits')
    const limit = Number(query.get('limit'))
    if (!(limit > 0 && limit <= 200)) return this.#violation('the limit of a list')
    const messages = this.#messages.filter((message) => message.token === token)
    const last = Number(query.get('lastKnownMessageId'))
    const found = isFuture
      ? messages.filter(({ id }) => id > last).slice(0, limit)
      : messages.slice(-limit).toReversed()
    // PHP writes an empty object as a list.
    const shown = found.map((message) =>
      Object.keys(message.messageParameters).length === 0 ? { ...message, messageParameters: [] } : message,
    )
    return shown.length === 0 ? { status: 304 } : ok(shown)
  }

  #create(
    token: string,
    { message: text = '', replyTo, referenceId = '' }: Body,
    response: ServerResponse,
    answer: (message: Message) => PlatformAnswer,
  ): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer')
      return answerFault(fault, response, {
        rate_limit: (seconds) => ({
          ...failure(429, 'Reached maximum delay'),
          ...(seconds !== undefined && { headers: { 'retry-after': String(seconds) } }),
        }),
        server_error: failure(500, 'Internal Server Error'),
        permanent: failure(403, ''),
        auth: failure(401, 'Current user is not logged in'),
      })
    if (text.trim() === '') return this.#violation('an empty message')
    if ([...text].length > MAX_CHARACTERS) return failure(413, '')
    if (!/^[0-9a-f]{64}$/.test(referenceId)) this.violations.push('a reference that is none')
    const parent = this.#messages.find(({ id }) => id === replyTo)
    if (replyTo !== undefined && parent?.token !== token) return failure(400, '')
    const [actorType, actorId, actorDisplayName] = this.#self()
    const message = this.#add({
      token,
      actorType,
      actorId,
      actorDisplayName,
      message: text,
      referenceId,
      ...(parent && { parent }),
    })
    this.#shown.show({
      id: String(message.id),
      chatId: token,
      text,
      replyTo: replyTo === undefined ? undefined : String(replyTo),
      files: [],
      buttons: [],
    })
    return fault ? resetConnection(response) : answer(message)
  }

  #react(messageId: string, { reaction: emoji = '' }: Body): PlatformAnswer {
    if (!this.#messages.some(({ id }) => String(id) === messageId)) return failure(404, '')
    this.reactions.push({ messageId, emoji })
    return { ...ok({}), status: 201 }
  }

  #dav({ method, bytes, headers }: PlatformCall, path: string): PlatformAnswer {
    const file = this.#files.get(path)
    const folder = path.slice(0, Math.max(0, path.lastIndexOf('/')))
    if (method === 'GET' && file) return { status: 200, body: new Uint8Array(file.bytes) }
    if (folder !== '' && !this.#folders.has(folder)) return failure(409, 'Parent node does not exist')
    if (method === 'MKCOL') {
      if (this.#folders.has(path)) return failure(405, '')
      this.#folders.add(path)
      return { status: 201 }
    }
    if (method !== 'PUT') return failure(404, '')
    const mime = headers['content-type'] ?? ''
    const name = path.split('/').at(-1) ?? ''
    this.#files.set(path, { kind: fileKind(mime), name, mime, bytes })
    return { status: 201 }
  }

  #share({ shareType, shareWith = '', path = '', referenceId = '' }: Body): PlatformAnswer {
    if (!/^[0-9a-f]{64}$/.test(referenceId)) this.violations.push('a reference that is none')
    const file = this.#files.get(path.replace(/^\//, ''))
    if (shareType !== 10 || !file) return this.#violation('a share that is none')
    const message = this.#add({ token: shareWith, actorType: 'users', actorId: USER, message: '{file}' })
    this.#shown.show({ id: String(message.id), chatId: shareWith, text: '', files: [file], buttons: [] })
    return ok({ id: '12', share_type: 10 })
  }

  #violation(what: string): PlatformAnswer {
    this.violations.push(what)
    return failure(400, what)
  }
}

/** As an account sees it: it asks at intervals. */
export class FakeNextcloudAccount extends FakeNextcloud {
  constructor() {
    super('user')
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrong' }
  }
  setWake(wake: () => Promise<void>): void {
    this.polls.setWake(wake)
  }
  async waitForListener(): Promise<void> {
    await this.polls.wait()
  }
  async disconnect(): Promise<void> {
    this.failPoll()
  }
  /** Settles when the adapter has asked once more. */
  nextQuestion(): Promise<void> {
    return this.polls.next()
  }
}

export const startFakeNextcloudBot = () => new FakeNextcloud('bot').listen()
export const startFakeNextcloudAccount = () => new FakeNextcloudAccount().listen()

const ok = (data: unknown): PlatformAnswer => ({
  status: 200,
  body: { ocs: { meta: { status: 'ok', statuscode: 200, message: 'OK' }, data } },
})
const failure = (status: number, message: string): PlatformAnswer => ({
  status,
  body: { ocs: { meta: { status: 'failure', statuscode: status, message }, data: [] } },
})
const actorOf = ({ actorType, actorId, actorDisplayName: name }: Message) => ({
  type: actorType === 'bots' ? 'Application' : 'Person',
  id: `${actorType}/${actorId}`,
  name,
})
function noteOf({ id, message, messageParameters: parameters = {} }: Message) {
  const content = JSON.stringify({ message, parameters: Object.keys(parameters).length === 0 ? [] : parameters })
  return { type: 'Note', id: String(id), name: 'message', content, mediaType: 'text/markdown' }
}
