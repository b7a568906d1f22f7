import type { ServerResponse } from 'node:http'
import { allFaults, answerFault, fileKind } from './faults.ts'
import { resetConnection, Shown, startPlatformServer } from './http.ts'
import type { PlatformAnswer, PlatformCall } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformFile, PlatformInput } from './platform.ts'

const TOKEN = 'syt_fake_matrix_token'
const PASSWORD = 'fake-matrix-password'
const BOT = '@svc:example.org'
const ADA = '@ada:example.org'
const BOB = '@bob:example.org'
const DIRECT = '!direct:example.org'
const GROUP = '!group:example.org'
const INVITED = '!invited:example.org'
const THREAD = '$root'

interface Event {
  readonly type: string
  readonly event_id: string
  readonly sender: string
  readonly origin_server_ts: number
  readonly content: Record<string, unknown>
  readonly state_key?: string
  readonly room: string
}
interface Relation {
  rel_type?: string
  event_id?: string
  'm.in_reply_to'?: { event_id?: string }
}
interface Content {
  msgtype?: string
  body?: string
  format?: string
  formatted_body?: string
  url?: string
  filename?: string
  'm.mentions'?: object
  'm.new_content'?: Content
  'm.relates_to'?: Relation
}

export interface FakeMatrix extends FakePlatform {
  /** Signs in with a password instead of the token. */
  readonly passwordConfig: Readonly<Record<string, unknown>>
  /** How often somebody signed in. */
  readonly signIns: number
  /** What the bot said of itself. */
  readonly notices: readonly { readonly room: string; readonly text: string }[]
  /** Ends the tokens that signing in gave. */
  endTokens(): void
  /** Events of a room that fit into one answer; older ones are found as history. */
  limitTimeline(events: number): void
  /** Sends an event to a room as it is. */
  sendEvent(room: string, event: { readonly type: string; readonly content: Record<string, unknown> }): string
  /** Ada invites the bot to a room in which there are messages already. */
  invite(): string
  readonly joined: ReadonlySet<string>
  /** Rooms by their addresses. */
  readonly aliases: Map<string, string>
  readonly legacyMedia: { isUsed: boolean }
}

/** A homeserver. Source: https://spec.matrix.org/latest/client-server-api/ */
export async function startFakeMatrix(): Promise<FakeMatrix> {
  const fake = new Matrix()
  const server = await startPlatformServer((call, response) => fake.handle(call, response))
  fake.origin = server.origin
  return Object.assign(fake, {
    async [Symbol.asyncDispose]() {
      fake.stop()
      await server[Symbol.asyncDispose]()
    },
  })
}

class Matrix implements Omit<FakeMatrix, typeof Symbol.asyncDispose> {
  readonly channel = 'matrix'
  readonly secrets = [TOKEN, PASSWORD]
  readonly chats = { direct: DIRECT, group: GROUP, thread: THREAD }
  readonly person = ADA
  readonly redelivers = true
  readonly faults = allFaults
  readonly removes = true
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  readonly notices: { room: string; text: string }[] = []
  readonly joined = new Set([DIRECT, GROUP])
  readonly aliases = new Map<string, string>()
  readonly legacyMedia = { isUsed: false }
  origin = ''
  signIns = 0
  readonly #shown = new Shown()
  readonly #events: Event[] = []
  readonly #files = new Map<string, PlatformFile>()
  readonly #transactions = new Map<string, string>()
  readonly #tokens = new Set([TOKEN])
  readonly #waiting = new Set<() => void>()
  readonly #listening = new Set<() => void>()
  #limit = 50
  #next = 1
  #invite: string | undefined
  #isCut = false
  #isListening = false

  get config() {
    return { token: TOKEN, base_url: this.origin }
  }
  get wrongConfig() {
    return { token: 'syt_wrong', base_url: this.origin }
  }
  get passwordConfig() {
    return { user: 'svc', password: PASSWORD, base_url: this.origin }
  }
  get sent() {
    return this.#shown.sent
  }
  waitForSent = (count: number) => this.#shown.waitForSent(count)
  fail = (fault: PlatformFault) => this.#shown.fail(fault)
  setWebhook = () => {}
  stop = () => this.#wake()
  endTokens(): void {
    this.#tokens.clear()
  }
  limitTimeline(events: number): void {
    this.#limit = events
  }
  async waitForListener(): Promise<void> {
    while (!this.#isListening) await new Promise<void>((resolve) => this.#listening.add(resolve))
  }
  async disconnect(): Promise<void> {
    this.#isCut = true
    this.#isListening = false
    this.#wake()
  }
  invite(): string {
    this.sendEvent(INVITED, { type: 'm.room.message', content: { msgtype: 'm.text', body: 'before the bot came' } })
    this.#invite = INVITED
    this.#wake()
    return INVITED
  }

  async deliver(input: PlatformInput): Promise<string> {
    const known = this.#events.find(({ event_id: id }) => id === input.redeliveryOf)
    if (known) {
      this.#events.push(known)
      this.#wake()
      return known.event_id
    }
    const room = input.isGroup || input.threadId !== undefined ? GROUP : DIRECT
    const [file] = input.files ?? []
    const content = file ? this.#fileContent(file) : this.#textContent(input)
    const relation = relationOf(input)
    return this.sendEvent(
      room,
      { type: 'm.room.message', content: { ...content, ...(relation && { 'm.relates_to': relation }) } },
      input.isOwn ? BOT : ADA,
    )
  }

  sendEvent(
    room: string,
    event: { readonly type: string; readonly content: Record<string, unknown> },
    sender = ADA,
    more: object = {},
  ): string {
    const id = `$event${this.#next++}`
    this.#events.push({
      ...event,
      ...more,
      room,
      event_id: id,
      sender,
      origin_server_ts: 1_763_640_000_000 + this.#next,
    })
    this.#wake()
    return id
  }

  #textContent(input: PlatformInput): Record<string, unknown> {
    const content = {
      msgtype: 'm.text',
      body: input.mentionsBot ? `svc: ${input.text}` : input.text,
      'm.mentions': input.mentionsBot ? { user_ids: [BOT] } : {},
    }
    if (input.editOf === undefined) return content
    return { ...content, body: `* ${content.body}`, 'm.new_content': content }
  }

  #fileContent(file: PlatformFile): Record<string, unknown> {
    const id = `in${this.#next++}`
    this.#files.set(id, file)
    const info = { mimetype: file.mime, size: file.bytes.byteLength }
    return { msgtype: `m.${file.kind}`, body: file.name, url: `mxc://example.org/${id}`, info }
  }

  #wake(): void {
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }

  // Events

  async #sync(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    if (this.#isCut) {
      this.#isCut = false
      return resetConnection(response)
    }
    const { searchParams: query } = call.url
    const since = query.get('since')
    // A filter, or the id of one that was stored.
    if (!/^(\{.*"room".*\}|filter-\d+)$/.test(query.get('filter') ?? ''))
      this.violations.push('a sync without a filter')
    if (since !== null && !/^s\d+$/.test(since)) return problem(400, 'M_INVALID_PARAM', 'since')
    const from = since === null ? 0 : Number(since.slice(1))
    const wait = since === null || query.get('timeout') === '0' ? 0 : 1
    if (wait > 0) {
      this.#isListening = true
      for (const resume of this.#listening) resume()
      this.#listening.clear()
      if (this.#events.length <= from && this.#invite === undefined)
        await new Promise<void>((resolve) => {
          this.#waiting.add(resolve)
          response.once('close', resolve)
        })
      if (this.#isCut) {
        this.#isCut = false
        return resetConnection(response)
      }
    }
    return { status: 200, body: this.#answer(from) }
  }

  #answer(from: number): object {
    const join: Record<string, object> = {}
    for (const room of this.joined) {
      const all = this.#events.flatMap((event, index) => (event.room === room ? [{ event, index }] : []))
      const fresh = all.filter(({ index }) => index >= from)
      if (fresh.length === 0) continue
      // A room that was joined comes with its history.
      const isNew = fresh.some(({ event }) => event.state_key === BOT)
      const shown = (isNew ? all : fresh).slice(-this.#limit)
      join[room] = {
        timeline: {
          events: shown.map(({ event }) => publicOf(event)),
          limited: shown.length < fresh.length,
          prev_batch: `s${shown[0]?.index ?? 0}`,
        },
        state: { events: [] },
      }
    }
    const member = { type: 'm.room.member', state_key: BOT, sender: ADA, content: { membership: 'invite' } }
    const invite = this.#invite === undefined ? {} : { [this.#invite]: { invite_state: { events: [member] } } }
    this.#invite = undefined
    return { next_batch: `s${this.#events.length}`, rooms: { join, invite, leave: {} } }
  }

  /** History, backwards from one position to another. */
  #messages(room: string, query: URLSearchParams): PlatformAnswer {
    const position = (name: string): number => Number((query.get(name) ?? 's0').slice(1))
    if (query.get('dir') !== 'b') return problem(400, 'M_MISSING_PARAM', 'dir')
    const found = this.#events.flatMap((event, index) =>
      event.room === room && index < position('from') && index >= position('to') ? [{ event, index }] : [],
    )
    const page = found.toReversed().slice(0, Math.min(this.#limit, Number(query.get('limit'))))
    const end = page.length < found.length ? { end: `s${page.at(-1)?.index ?? 0}` } : {}
    return { status: 200, body: { start: query.get('from'), chunk: page.map(({ event }) => publicOf(event)), ...end } }
  }

  // The API

  async handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const path = decodeURIComponent(call.url.pathname.replace(/^\/_matrix/, ''))
    if (path === '/client/v3/login') return this.#signIn(call)
    const token = /^Bearer (.+)$/.exec(call.headers.authorization ?? '')?.[1]
    if (token === undefined) return problem(401, 'M_MISSING_TOKEN', 'Missing access token')
    if (!this.#tokens.has(token)) return problem(401, 'M_UNKNOWN_TOKEN', 'Invalid access token passed.')
    if (path === '/client/v3/account/whoami') return { status: 200, body: { user_id: BOT, device_id: 'FAKE' } }
    if (path === '/client/v3/sync') return this.#sync(call, response)
    const [, address] = /^\/client\/v3\/join\/(.+)$/.exec(path) ?? []
    if (address !== undefined && call.method === 'POST') return this.#joinAddress(address)
    const known = startAnswers[`${call.method} ${path}`]
    if (known) return { status: 200, body: known }
    if (path === '/media/v3/upload' && call.method === 'POST') return this.#upload(call)
    const media = /^\/(client\/v1\/media|media\/v3)\/download\/example\.org\/(\w+)$/.exec(path)
    if (media) return this.#download(media[1] ?? '', media[2] ?? '')
    const [, room = '', action = ''] = /^\/client\/v3\/rooms\/([^/]+)\/(.+)$/.exec(path) ?? []
    return this.#room(call, response, room, action)
  }

  #room(call: PlatformCall, response: ServerResponse, room: string, action: string): PlatformAnswer | undefined {
    if (action === 'join') return this.#join(room)
    if (!this.joined.has(room)) return problem(403, 'M_FORBIDDEN', `User ${BOT} not in room ${room}`)
    if (action === 'joined_members') return { status: 200, body: { joined: this.#members(room) } }
    if (action === 'messages') return this.#messages(room, call.url.searchParams)
    if (action === `typing/${BOT}`) {
      const { typing, timeout } = call.json as { typing?: unknown; timeout?: unknown }
      if (typing !== true || typeof timeout !== 'number') return problem(400, 'M_BAD_JSON', 'typing')
      this.typing.push(room)
      return { status: 200, body: {} }
    }
    const [, event, redaction] = /^redact\/([^/]+)\/(.+)$/.exec(action) ?? []
    if (event !== undefined && redaction !== undefined && call.method === 'PUT') return this.#redact(event, redaction)
    const [, type, transaction] = /^send\/([\w.]+)\/(.+)$/.exec(action) ?? []
    if (type === undefined || transaction === undefined || call.method !== 'PUT')
      return problem(404, 'M_UNRECOGNIZED', 'Unrecognized request')
    return this.#send(call.json as Content, response, { room, type, transaction })
  }

  #redact(event: string, transaction: string): PlatformAnswer {
    const known = this.#transactions.get(transaction)
    if (known === undefined && !this.#shown.remove(decodeURIComponent(event)))
      return problem(404, 'M_NOT_FOUND', 'Could not find event')
    const id = known ?? `$redaction-of-${event}`
    this.#transactions.set(transaction, id)
    return { status: 200, body: { event_id: id } }
  }

  #members(room: string): Record<string, object> {
    const people = room === GROUP ? [BOT, ADA, BOB] : [BOT, ADA]
    return Object.fromEntries(people.map((id) => [id, { display_name: id.slice(1, id.indexOf(':')) }]))
  }

  #joinAddress(address: string): PlatformAnswer {
    const room = this.aliases.get(address)
    if (room === undefined) return problem(404, 'M_NOT_FOUND', `Room alias ${address} not found`)
    return this.joined.has(room) ? { status: 200, body: { room_id: room } } : this.#join(room)
  }

  #join(room: string): PlatformAnswer {
    this.joined.add(room)
    this.sendEvent(room, { type: 'm.room.member', content: { membership: 'join' } }, BOT, { state_key: BOT })
    return { status: 200, body: { room_id: room } }
  }

  #send(
    content: Content,
    response: ServerResponse,
    { room, type, transaction }: { room: string; type: string; transaction: string },
  ): PlatformAnswer | undefined {
    const relation = content['m.relates_to']
    const isNew = type === 'm.room.message' && relation?.rel_type !== 'm.replace'
    const fault = isNew ? this.#shown.takeFault() : undefined
    if (fault && fault.kind !== 'lost_answer')
      return answerFault(fault, response, {
        rate_limit: (seconds) => ({
          status: 429,
          body: {
            errcode: 'M_LIMIT_EXCEEDED',
            error: 'Too Many Requests',
            ...(seconds !== undefined && { retry_after_ms: seconds * 1000 }),
          },
        }),
        server_error: problem(500, 'M_UNKNOWN', 'Internal server error'),
        permanent: problem(403, 'M_FORBIDDEN', 'You do not have permission to post to the room'),
        auth: problem(401, 'M_UNKNOWN_TOKEN', 'Access token has expired'),
      })
    const known = this.#transactions.get(transaction)
    if (known !== undefined) return { status: 200, body: { event_id: known } }
    const wrong = type === 'm.reaction' ? refuseReaction(relation) : refuse(content, this.#files)
    if (wrong) {
      this.violations.push(wrong)
      return problem(400, 'M_BAD_JSON', wrong)
    }
    const id = this.sendEvent(room, { type, content: content as Record<string, unknown> }, BOT)
    this.#transactions.set(transaction, id)
    this.#show(content, room, id)
    return fault ? resetConnection(response) : { status: 200, body: { event_id: id } }
  }

  #show(content: Content, room: string, id: string): void {
    if (content.msgtype === 'm.notice') return void this.notices.push({ room, text: content.body ?? '' })
    const relation = content['m.relates_to']
    if (relation?.rel_type === 'm.annotation') {
      this.reactions.push({ messageId: relation.event_id ?? '', emoji: (relation as { key?: string }).key ?? '' })
      return
    }
    if (relation?.rel_type === 'm.replace') {
      this.#shown.edit(relation.event_id ?? '', content['m.new_content']?.formatted_body ?? '')
      return
    }
    const file = this.#files.get(content.url?.split('/').at(-1) ?? '')
    const isThread = relation?.rel_type === 'm.thread'
    this.#shown.show({
      id,
      chatId: room,
      threadId: isThread ? relation.event_id : undefined,
      text: file ? '' : (content.formatted_body ?? ''),
      replyTo: isThread ? undefined : relation?.['m.in_reply_to']?.event_id,
      files: file ? [{ ...file, name: content.filename ?? '' }] : [],
      buttons: [],
    })
  }

  #signIn(call: PlatformCall): PlatformAnswer {
    const {
      type,
      identifier,
      password,
      device_id: device,
    } = call.json as {
      type?: string
      identifier?: { type?: string; user?: string }
      password?: string
      device_id?: string
    }
    if (type !== 'm.login.password' || identifier?.type !== 'm.id.user' || identifier.user !== 'svc')
      return problem(400, 'M_UNKNOWN', 'Bad login type.')
    this.signIns++
    if (password !== PASSWORD) return problem(403, 'M_FORBIDDEN', 'Invalid username or password')
    const token = `syt_given_${this.#next++}`
    this.#tokens.add(token)
    return { status: 200, body: { access_token: token, user_id: BOT, device_id: device } }
  }

  #upload(call: PlatformCall): PlatformAnswer {
    const id = `up${this.#next++}`
    const mime = call.headers['content-type'] ?? ''
    const name = call.url.searchParams.get('filename') ?? ''
    this.#files.set(id, { kind: fileKind(mime), name, mime, bytes: call.bytes })
    return { status: 200, body: { content_uri: `mxc://example.org/${id}` } }
  }

  #download(kind: string, id: string): PlatformAnswer {
    if (this.legacyMedia.isUsed === (kind === 'client/v1/media'))
      return problem(404, 'M_UNRECOGNIZED', 'Unrecognized request')
    const file = this.#files.get(id)
    if (!file) return problem(404, 'M_NOT_FOUND', 'Not found')
    return { status: 200, body: file.bytes, headers: { 'content-type': file.mime } }
  }
}

/** What clients with all features ask for when they start. */
const startAnswers: Readonly<Record<string, object>> = {
  'GET /client/versions': { versions: ['v1.11'], unstable_features: {} },
  'GET /client/v3/capabilities': { capabilities: {} },
  'GET /client/v3/pushrules/': { global: {} },
  'GET /client/v3/voip/turnServer': {},
  [`POST /client/v3/user/${BOT}/filter`]: { filter_id: 'filter-1' },
  [`GET /client/v3/user/${BOT}/filter/filter-1`]: { room: {} },
}

function relationOf({ threadId, replyTo, editOf }: PlatformInput): Relation | undefined {
  if (editOf !== undefined) return { rel_type: 'm.replace', event_id: editOf }
  const reply = replyTo === undefined ? undefined : { 'm.in_reply_to': { event_id: replyTo } }
  if (threadId !== undefined) return { rel_type: 'm.thread', event_id: threadId, ...reply }
  return reply
}

function publicOf(event: Event): object {
  return { ...event, room: undefined, unsigned: { age: 5 } }
}

function refuseReaction(relation: Relation | undefined): string | undefined {
  return relation?.rel_type === 'm.annotation' && relation.event_id?.startsWith('$') ? undefined : 'a wrong reaction'
}

function refuse(content: Content, files: ReadonlyMap<string, PlatformFile>): string | undefined {
  if (JSON.stringify(content).length > 60_000) return 'an event that is too large'
  if (typeof content.body !== 'string' || content.body === '') return 'a message without a body'
  if (!content['m.mentions']) return 'a message that does not say whom it mentions'
  const relation = content['m.relates_to']
  if (relation?.rel_type === 'm.replace' && !content['m.new_content']?.body) return 'an edit without its content'
  if (relation?.rel_type === 'm.thread' && !relation['m.in_reply_to']) return 'a thread without a fallback'
  if (content.msgtype === 'm.notice') return undefined
  if (content.msgtype !== 'm.text' && !files.has(content.url?.split('/').at(-1) ?? ''))
    return 'a file that is not there'
  if (content.msgtype === 'm.text' && content.format !== 'org.matrix.custom.html') return 'a text without a format'
  return undefined
}

function problem(status: number, errcode: string, error: string): PlatformAnswer {
  return { status, body: { errcode, error } }
}
