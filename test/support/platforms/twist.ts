import type { ServerResponse } from 'node:http'
import { allFaults, answerFault, fileOf } from './faults.ts'
import { resetConnection, Shown, startPlatformServer } from './http.ts'
import type { PlatformAnswer, PlatformCall, PlatformServer } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformFile, PlatformInput } from './platform.ts'
import { Polls } from './polls.ts'

const TOKEN = 'oauth2:fake9b1bf97783c1ad5593dee12f3019079dbd3042cf'
const WORKSPACE = 5517
const BOT = { id: 10_001, name: 'Helper', bot: true, email: 'helper@twist.test', default_workspace: WORKSPACE }
const ADA = { id: 10_073, name: 'Ada', bot: false, email: 'ada@twist.test' }
const CHANNEL = { id: 6984, name: 'harbour' }
const CONVERSATION = 13_037
const THREAD = 32_038
const USUAL_THREAD = 32_000
const LONG_AGO = 1_500_000_000
const MAX_CHARACTERS = 10_000

type Kind = 'thread' | 'conversation'
interface Entry {
  readonly id: number
  content: string
  readonly creator: number
  readonly posted_ts: number
  readonly obj_index: number
  readonly attachments: readonly unknown[]
  readonly system_message: unknown
}
interface Source {
  readonly kind: Kind
  readonly id: number
  readonly userIds: readonly number[]
  /** What begins a thread. */
  readonly opening?: { readonly title: string; content: string; readonly creator: number; readonly posted_ts: number }
  readonly entries: Entry[]
  read: number
  next: number
}
/** What somebody writes beside what all platforms have. */
export interface Written extends PlatformInput {
  readonly from?: { readonly id: number }
  readonly system?: unknown
  readonly attachments?: readonly unknown[]
  readonly conversation?: number
}
interface Body {
  id?: number
  content?: string
  thread_id?: number
  comment_id?: number
  message_id?: number
  conversation_id?: number
  channel_id?: number
  title?: string
  obj_index?: number
  reaction?: string
  recipients?: unknown
  attachments?: { attachment_id?: string }[]
}

/** Twist's API version 3. Source: https://developer.twist.com/v3/ and github.com/Doist/twist-sdk-typescript. */
export class FakeTwist implements FakePlatform {
  readonly channel = 'twist'
  readonly secrets = [TOKEN]
  readonly chats = { direct: `dm:${CONVERSATION}`, group: String(CHANNEL.id), thread: String(THREAD) }
  readonly person = String(ADA.id)
  readonly redelivers = true
  readonly faults = allFaults
  readonly removes = true
  readonly answersInJson = true
  readonly lacks = new Set(['edits of others'] as const)
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  /** Threads that the bot may not read. */
  readonly closed = new Set<number>()
  readonly requests: string[] = []
  /** Who was told of comments. */
  readonly recipients: unknown[] = []
  readonly #shown = new Shown()
  readonly #polls = new Polls()
  readonly #sources: Source[] = []
  readonly #users: (typeof ADA)[] = [BOT, ADA]
  readonly #files = new Map<string, PlatformFile>()
  #server: PlatformServer | undefined
  #next = 500
  #isAway = false
  #isIgnoring = false

  constructor() {
    for (const id of [THREAD, USUAL_THREAD])
      this.#source('thread', id, { title: 'Old', content: 'the opening', creator: ADA.id, posted_ts: LONG_AGO })
    this.#source('conversation', CONVERSATION)
  }
  static async start(): Promise<FakeTwist> {
    const fake = new FakeTwist()
    fake.#server = await startPlatformServer((call, response) => fake.#handle(call, response))
    return fake
  }

  get origin(): string {
    return this.#server?.origin ?? ''
  }
  get config() {
    return { token: TOKEN, base_url: this.origin }
  }
  get wrongConfig() {
    return { ...this.config, token: 'oauth2:wrong' }
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
  setWake(wake: () => Promise<void>): void {
    this.#polls.setWake(wake)
  }
  async waitForListener(): Promise<void> {
    await this.#polls.wait()
  }
  async disconnect(): Promise<void> {
    this.#isAway = true
    this.#polls.hurry()
  }
  /** What is marked as read stays unread. */
  ignoreMarks(): void {
    this.#isIgnoring = true
  }
  /** Settles when the adapter has asked once more. */
  nextQuestion(): Promise<void> {
    return this.#polls.next()
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.#polls.dispose()
    await this.#server?.[Symbol.asyncDispose]()
  }

  deliver = (input: PlatformInput) => this.write(input)

  /** `isQuiet`: it waits for the next question of the adapter, which nothing hurries. */
  async write(input: Written, { isQuiet = false } = {}): Promise<string> {
    if (input.redeliveryOf !== undefined) return input.redeliveryOf
    const isThread = input.isGroup === true || input.threadId !== undefined
    const id = isThread ? Number(input.threadId ?? USUAL_THREAD) : (input.conversation ?? CONVERSATION)
    const source = this.#find(isThread ? 'thread' : 'conversation', id)
    if (!source) throw new Error('There is no such place')
    const entry = this.#add(source, {
      content: input.mentionsBot ? `[${BOT.name}](twist-mention://${BOT.id}) ${input.text}` : input.text,
      creator: input.isOwn ? BOT.id : (input.from ?? ADA).id,
      attachments: [
        ...(input.files ?? []).map((file) => this.#describe(this.#keep(file), file)),
        ...(input.attachments ?? []),
      ],
      system: input.system ?? null,
    })
    if (!isQuiet) this.#polls.hurry()
    return `${isThread ? 'c' : 'm'}${entry.id}`
  }
  /** Somebody begins a thread. */
  begin(title: string, content: string): number {
    const id = this.#next++
    this.#source('thread', id, { title, content, creator: ADA.id, posted_ts: seconds() }).read = -2
    this.#polls.hurry()
    return id
  }
  addConversation(id: number, userIds: readonly number[]): void {
    this.#source('conversation', id, undefined, userIds)
  }
  addUser(user: typeof ADA): void {
    this.#users.push(user)
  }

  #source(kind: Kind, id: number, opening?: Source['opening'], userIds: readonly number[] = [BOT.id, ADA.id]): Source {
    const source: Source = { kind, id, userIds, ...(opening && { opening }), entries: [], read: -1, next: 0 }
    this.#sources.push(source)
    return source
  }
  #find(kind: Kind, id: number | undefined): Source | undefined {
    return this.#sources.find((source) => source.kind === kind && source.id === id)
  }
  #add(
    source: Source,
    given: { content: string; creator: number; attachments: readonly unknown[]; system: unknown },
  ): Entry {
    const { content, creator, attachments, system } = given
    const index = source.next++
    const common = { id: this.#next++, posted_ts: seconds(), obj_index: index, system_message: system }
    const entry: Entry = { ...common, content, creator, attachments }
    source.entries.push(entry)
    if (creator === BOT.id) source.read = Math.max(source.read, source.read === index - 1 ? index : source.read)
    return entry
  }
  #keep(file: PlatformFile, id = `file-${this.#next++}`): string {
    this.#files.set(id, file)
    return id
  }
  #describe(id: string, { name, mime, bytes, kind }: PlatformFile) {
    const url = `${this.origin}/cdn/${id}`
    const type = kind === 'image' ? 'image' : 'file'
    const common = { attachment_id: id, title: name, url, url_type: type, upload_state: 'uploaded' }
    return { ...common, file_name: name, file_size: bytes.length, underlying_type: mime }
  }

  async #handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { method, url, headers } = call
    const file = this.#files.get(/^\/cdn\/(.+)$/.exec(url.pathname)?.[1] ?? '')
    if (file) {
      if (headers.authorization !== undefined) this.violations.push('the token was sent to the store of files')
      return { status: 200, body: new Uint8Array(file.bytes), headers: { 'content-type': file.mime } }
    }
    // A wrong token is 403 here.
    if (headers.authorization !== `Bearer ${TOKEN}`) return failure(403, 200, 'Invalid token')
    const route = `${method} ${url.pathname.replace(/^\/api\//, '')}`
    this.requests.push(route)
    if (method === 'GET') return this.#get(route.slice('GET '.length), url.searchParams)
    if (route === 'POST v3/attachments/upload') return this.#upload(call)
    const body = (call.json ?? {}) as Body
    const [, resource = '', verb = ''] = /^POST v3\/(\w+)\/(\w+)$/.exec(route) ?? []
    if (verb === 'add' && resource !== 'reactions') return this.#create(resource, body, response)
    if (verb === 'mark_read') return this.#markRead(resource === 'threads' ? 'thread' : 'conversation', body)
    if (resource === 'reactions') return this.#react(body)
    if (verb === 'update' || verb === 'remove') return this.#change(resource, verb, body)
    return this.#violation(`the request ${route}`)
  }

  #get(route: string, query: URLSearchParams): PlatformAnswer {
    const id = Number(query.get('id'))
    if (route === 'v3/users/get_session_user') return ok(BOT)
    if (route === 'v4/workspace_users/get' && id === WORKSPACE) return ok(this.#users)
    if (route === 'v3/channels/getone') return id === CHANNEL.id ? ok(CHANNEL) : failure(404, 107, 'Channel not found')
    if (route === 'v3/threads/getone') return this.#threadOf(id)
    if (route === 'v3/conversations/getone') {
      const source = this.#find('conversation', id)
      return source ? ok({ id, user_ids: source.userIds, title: null }) : failure(404, 124, 'Conversation not found')
    }
    if (route.endsWith('/get_unread')) return this.#unread(route, query)
    if (route === 'v3/comments/get') return this.#list('thread', query)
    if (route === 'v3/conversation_messages/get') return this.#list('conversation', query)
    return this.#violation(`the request ${route}`)
  }

  #threadOf(id: number): PlatformAnswer {
    const { opening } = this.#find('thread', id) ?? {}
    if (this.closed.has(id)) return failure(403, 109, 'Forbidden')
    if (!opening) return failure(404, 108, 'Thread not found')
    return ok({
      id,
      channel_id: CHANNEL.id,
      workspace_id: WORKSPACE,
      attachments: [],
      system_message: null,
      ...opening,
    })
  }

  #unread(route: string, query: URLSearchParams): PlatformAnswer {
    if (Number(query.get('workspace_id')) !== WORKSPACE) return failure(404, 105, 'Workspace not found')
    const kind = route.startsWith('v3/threads') ? 'thread' : 'conversation'
    if (kind === 'conversation') {
      this.#polls.note()
      if (this.#isAway) {
        this.#isAway = false
        return failure(503, 201, 'Service Unavailable')
      }
    }
    const unread = this.#sources.filter((source) => source.kind === kind && source.read < source.next - 1)
    return ok(
      unread.map(({ id, read }) => ({
        [`${kind}_id`]: id,
        ...(kind === 'thread' && { channel_id: CHANNEL.id }),
        obj_index: Math.max(read, -1),
        direct_mention: false,
      })),
    )
  }

  #list(kind: Kind, query: URLSearchParams): PlatformAnswer {
    const source = this.#find(kind, Number(query.get(`${kind}_id`)))
    const limit = Number(query.get('limit'))
    if (!source || !(limit > 0 && limit <= 500)) return this.#violation('a list that is none')
    const { entries } = source
    if (query.get('order_by') !== 'asc') return ok(entries.slice(-limit).toReversed())
    return ok(entries.filter(({ obj_index: index }) => index >= Number(query.get('from_obj_index'))).slice(0, limit))
  }

  #markRead(kind: Kind, { id, obj_index: index }: Body): PlatformAnswer {
    const source = this.#find(kind, id)
    if (!source || index === undefined || index < -1) return this.#violation('a mark that is none')
    if (!this.#isIgnoring) source.read = Math.max(source.read, index)
    return ok({ status: 'ok' })
  }

  #create(resource: string, body: Body, response: ServerResponse): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer')
      return answerFault(fault, response, {
        rate_limit: (seconds) => ({
          status: 429,
          body: { error_code: 0, error_string: 'Too many requests' },
          ...(seconds !== undefined && { headers: { 'retry-after': String(seconds) } }),
        }),
        server_error: failure(500, 201, 'Internal Server Error'),
        permanent: failure(403, 109, 'Forbidden'),
        auth: failure(403, 200, 'Invalid token'),
      })
    const { content = '', attachments = [], recipients } = body
    if (content.trim() === '') return this.#violation('Required argument is missing')
    if (content.length > MAX_CHARACTERS) return this.#violation('Invalid argument value')
    if (recipients !== undefined && !Array.isArray(recipients)) return this.#violation('recipients')
    const files = attachments.flatMap(({ attachment_id: id = '' }) => this.#files.get(id) ?? [])
    if (files.length < attachments.length) return failure(400, 118, 'attachments do not comply')
    const id = this.#show(resource, body, files)
    if (id === undefined) return failure(404, 108, 'Thread not found')
    return fault ? resetConnection(response) : ok({ id, content })
  }

  #show(resource: string, body: Body, files: readonly PlatformFile[]): number | undefined {
    const { content = '', channel_id: channel, thread_id: thread, conversation_id: conversation, title = '' } = body
    const shown = { text: content === '📎' ? '' : content, files, buttons: [] }
    if (resource === 'threads') {
      if (channel !== CHANNEL.id || title === '') return undefined
      const id = this.#next++
      this.#source('thread', id, { title, content, creator: BOT.id, posted_ts: seconds() })
      this.#shown.show({ ...shown, id: `t${id}`, chatId: String(channel), threadId: String(id) })
      return id
    }
    const isComment = resource === 'comments'
    const source = isComment ? this.#find('thread', thread) : this.#find('conversation', conversation)
    if (!source) return undefined
    if (isComment) this.recipients.push(body.recipients)
    const { id } = this.#add(source, { content, creator: BOT.id, attachments: [], system: null })
    const place = isComment
      ? { id: `c${id}`, chatId: String(CHANNEL.id), threadId: String(thread) }
      : { id: `m${id}`, chatId: `dm:${conversation}` }
    this.#shown.show({ ...shown, ...place })
    return id
  }

  #change(resource: string, verb: 'update' | 'remove', { id = 0, content = '' }: Body): PlatformAnswer {
    const key = `${{ comments: 'c', conversation_messages: 'm', threads: 't' }[resource] ?? '?'}${id}`
    const isFound = verb === 'update' ? this.#shown.edit(key, content) : this.#shown.remove(key)
    return isFound ? ok({ status: 'ok' }) : failure(404, 115, 'Comment not found')
  }

  #react({ reaction: emoji = '', thread_id: thread, comment_id: comment, message_id: message }: Body): PlatformAnswer {
    const targets = [thread, comment, message].filter((id) => id !== undefined)
    if (targets.length !== 1) return this.#violation('a reaction to nothing')
    const messageId = thread !== undefined ? `t${thread}` : comment !== undefined ? `c${comment}` : `m${message}`
    this.reactions.push({ messageId, emoji })
    return ok({ status: 'ok' })
  }

  async #upload(call: PlatformCall): Promise<PlatformAnswer> {
    const form = await call.form()
    const file = form.get('file')
    const id = form.get('attachment_id')
    if (!(file instanceof File) || typeof id !== 'string' || form.get('file_name') !== file.name)
      return this.#violation('an upload without a file')
    const kept = await fileOf(file)
    return ok(this.#describe(this.#keep(kept, id), kept))
  }

  #violation(what: string): PlatformAnswer {
    this.violations.push(what)
    return failure(400, 20, what)
  }
}

const ok = (body: unknown): PlatformAnswer => ({ status: 200, body })
const failure = (status: number, code: number, text: string): PlatformAnswer => ({
  status,
  body: { error_uuid: 'f699b0e0caa4446e847e17cc1d42801b', error_code: code, error_extra: {}, error_string: text },
})
const seconds = (): number => Math.floor(Date.now() / 1000)
