import type { ServerResponse } from 'node:http'
import { allFaults, answerFault } from './faults.ts'
import { resetConnection, Shown, startPlatformServer } from './http.ts'
import type { PlatformAnswer, PlatformCall, PlatformServer } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformInput } from './platform.ts'

const CLIENT_ID = 'p-jcoLKBynTLew'
const SECRET = 'gko_LXELoV07ZBNUXrvWZfzE3aI'
const PASSWORD = 'correct horse'
const BOT = 'Helper_Bot'
const ADA = 'ada_l'
const COMMUNITY = 'harbour'
const POST = 't3_4b1tfm'
const USER_AGENT = 'server:harbour-helper:v1 (by /u/harbour_master)'
const FIRST_SECS = 1_763_640_000

interface Data {
  readonly name: string
  readonly author: string
  readonly body: string
  readonly created_utc: number
  readonly subreddit: string | null
  readonly parent_id: string | null
  readonly link_id?: string
  readonly [field: string]: unknown
}
/** An item of a list; a test may change any field. */
export type FakeRedditItem = Readonly<Record<string, unknown>>

const refuse = (status: number, message: string, more: object = {}, headers = {}): PlatformAnswer => ({
  status,
  body: { message, error: status, ...more },
  headers,
})
const UNAUTHORIZED = refuse(401, 'Unauthorized')

/** Reddit's API for scripts: https://www.reddit.com/dev/api */
export class FakeReddit implements FakePlatform {
  readonly channel = 'reddit'
  readonly secrets = [SECRET, PASSWORD, Buffer.from(`${CLIENT_ID}:${SECRET}`).toString('base64'), 'bearer-']
  readonly chats = { direct: `u/${ADA}`, group: `r/${COMMUNITY}`, thread: POST }
  readonly person = ADA
  readonly redelivers = true
  readonly faults = allFaults
  readonly answersInJson = true
  readonly typing = []
  readonly reactions = []
  readonly violations: string[] = []
  /** Nobody but its members reads the community. */
  isPrivate = false
  /** What the API answers besides: headers of the limit. */
  limit = { remaining: '599.0', reset: '369' }
  signIns = 0
  readonly #shown = new Shown()
  readonly #unread: { kind: string; data: Data }[] = []
  readonly #comments: Data[] = []
  readonly #delivered = new Map<string, Data>()
  #wake: () => void = () => {}
  #server: PlatformServer | undefined
  #next = 1
  #token = ''
  #refusesSignIn = false
  #drops = false
  #refusal: readonly [code: string, text: string, ratelimit?: number] | undefined

  static async start(): Promise<FakeReddit> {
    const fake = new FakeReddit()
    fake.#server = await startPlatformServer((call, response) => fake.#handle(call, response))
    return fake
  }

  get origin(): string {
    return this.#server?.origin ?? ''
  }
  get config() {
    return {
      base_url: `${this.origin}/oauth`,
      auth_url: this.origin,
      client_id: CLIENT_ID,
      token: SECRET,
      username: BOT,
      password: PASSWORD,
      user_agent: USER_AGENT,
      subreddits: [COMMUNITY],
    }
  }
  get wrongConfig() {
    return { ...this.config, password: 'wrong horse' }
  }
  get unread(): readonly string[] {
    return this.#unread.map(({ data }) => data.name)
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
  /** The next message is refused, with status 200. */
  refuse(code: string, text: string, ratelimit?: number): void {
    this.#refusal = ratelimit === undefined ? [code, text] : [code, text, ratelimit]
  }
  setWebhook(): void {}
  setWake(wake: () => Promise<void>): void {
    this.#wake = wake
  }
  /** Fails the next poll. */
  async disconnect(): Promise<void> {
    this.#drops = true
    this.#wake()
  }
  expire(): void {
    this.#token = 'none'
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const { redeliveryOf = '', threadId, isGroup, mentionsBot, isOwn, replyTo = null } = input
    const known = [...this.#unread.map(({ data }) => data), ...this.#delivered.values()]
    const earlier = known.find(({ name }) => name === redeliveryOf)
    if (earlier) {
      this.#unread.unshift({ kind: earlier.name.startsWith('t1') ? 't1' : 't4', data: earlier })
      this.#wake()
      return redeliveryOf
    }
    const author = isOwn ? BOT : ADA
    const body = mentionsBot ? `u/${BOT.toLowerCase()} ${input.text}` : input.text
    if (!isGroup && threadId === undefined) return this.tell({ author, body, parent_id: replyTo })
    const parent = replyTo ?? threadId ?? POST
    const name = this.write({ author, body, parent_id: parent, link_id: threadId ?? POST })
    if (mentionsBot || this.#shown.find(parent)) this.notify(name)
    return name
  }

  /** Somebody writes a private message; what is absent is as usual. */
  tell(fields: FakeRedditItem): string {
    const data = { ...this.#data('t4'), subject: 'a question', subreddit: null, parent_id: null, ...fields }
    this.#keep('t4', data)
    return data.name
  }
  /** Somebody writes a comment in the community. */
  write(fields: FakeRedditItem): string {
    const data = { ...this.#data('t1'), subreddit: COMMUNITY, parent_id: POST, link_id: POST, ...fields }
    this.#comments.unshift(data)
    this.#delivered.set(data.name, data)
    this.#wake()
    return data.name
  }
  /** The account is told of a comment, which names its post in the address alone. */
  notify(name: string): void {
    const comment = this.#comments.find((each) => each.name === name)
    if (!comment) throw new Error(`there is no comment ${name}`)
    const { link_id: link = '', ...data } = comment
    const context = `/r/${COMMUNITY}/comments/${link.slice(3)}/a_title/${name.slice(3)}/?context=3`
    this.#keep('t1', { ...data, context, was_comment: true, subject: 'username mention' })
  }

  #keep(kind: string, data: Data): void {
    this.#unread.unshift({ kind, data })
    this.#delivered.set(data.name, data)
    this.#wake()
  }
  #data(kind: string) {
    const id = this.#next++
    return {
      name: `${kind}_${id.toString(36)}`,
      author: ADA,
      body: 'hi',
      created_utc: FIRST_SECS + id,
      distinguished: null,
    }
  }

  #handle(call: PlatformCall, response: ServerResponse): PlatformAnswer | undefined {
    const { method, url, headers } = call
    // The server of Reddit slows down clients that say nothing of themselves.
    if (headers['user-agent'] !== USER_AGENT) return this.#violation(429, 'Too Many Requests')
    const form = new URLSearchParams(Buffer.from(call.bytes).toString())
    if (`${method} ${url.pathname}` === 'POST /api/v1/access_token') return this.#signIn(form, headers.authorization)
    if (headers.authorization !== `Bearer ${this.#token}`) return UNAUTHORIZED
    const answer = this.#answer(
      `${method} ${url.pathname.replace(/^\/oauth/, '')}`,
      { form, query: url.searchParams },
      response,
    )
    const { remaining, reset } = this.limit
    return (
      answer && {
        ...answer,
        headers: { 'x-ratelimit-remaining': remaining, 'x-ratelimit-reset': reset, ...answer.headers },
      }
    )
  }
  #answer(
    route: string,
    { form, query }: { readonly form: URLSearchParams; readonly query: URLSearchParams },
    response: ServerResponse,
  ): PlatformAnswer | undefined {
    switch (route) {
      case 'GET /api/v1/me':
        return { status: 200, body: { name: BOT, id: '75u2lqkb' } }
      case 'GET /message/unread':
        if (this.#drops) {
          this.#drops = false
          return resetConnection(response)
        }
        if (query.get('mark') !== 'false') return this.#violation(400, 'a list that marks messages as read')
        return this.#list(this.#unread, query)
      case `GET /r/${COMMUNITY}/comments`:
        if (this.isPrivate) return { status: 403, body: { reason: 'private', message: 'Forbidden', error: 403 } }
        return this.#list(
          this.#comments.map((data) => ({ kind: 't1', data })),
          query,
        )
      case `GET /user/${BOT}/comments`:
        return this.#list(
          this.#comments.flatMap((data) => (data.author === BOT ? [{ kind: 't1', data }] : [])),
          query,
        )
      case 'POST /api/read_message':
        return this.#markRead(form.get('id') ?? '')
      case 'POST /api/comment':
        return this.#send(form, response, (text) => this.#comment(form.get('thing_id') ?? '', text))
      case 'POST /api/compose':
        return this.#send(form, response, (text) => this.#compose(form, text))
      default:
        return this.#violation(404, `Not Found: ${route}`)
    }
  }

  #signIn(form: URLSearchParams, authorization: string | undefined): PlatformAnswer {
    const basic = Buffer.from(`${CLIENT_ID}:${SECRET}`).toString('base64')
    if (authorization !== `Basic ${basic}`) return UNAUTHORIZED
    if (form.get('grant_type') !== 'password') return { status: 200, body: { error: 'unsupported_grant_type' } }
    this.signIns++
    const isRefused = this.#refusesSignIn
    this.#refusesSignIn = false
    if (isRefused || form.get('username') !== BOT || form.get('password') !== PASSWORD)
      return { status: 200, body: { error: 'invalid_grant' } }
    this.#token = `bearer-${this.#next++}`
    const body = { access_token: this.#token, token_type: 'bearer', expires_in: 86_400, scope: '*' }
    return { status: 200, body }
  }

  #list(all: readonly { readonly kind: string; readonly data: Data }[], query: URLSearchParams): PlatformAnswer {
    const limit = Number(query.get('limit') ?? 25)
    if (query.get('raw_json') !== '1') return this.#violation(400, 'texts with entities of HTML')
    if (!(limit >= 1 && limit <= 100)) return this.#violation(400, 'the limit of a list')
    const start = all.findIndex(({ data }) => data.name === query.get('after')) + 1
    const children = all.slice(start, start + limit)
    const after = start + limit < all.length ? children.at(-1)?.data.name : null
    return { status: 200, body: { kind: 'Listing', data: { children, after, before: null } } }
  }
  #markRead(ids: string): PlatformAnswer {
    const names = ids.split(',')
    if (ids === '' || names.length > 25) return this.#violation(400, 'the number of names')
    for (const name of names) {
      const index = this.#unread.findIndex(({ data }) => data.name === name)
      if (index !== -1) this.#unread.splice(index, 1)
    }
    return { status: 200, body: {} }
  }

  #send(
    form: URLSearchParams,
    response: ServerResponse,
    show: (text: string) => PlatformAnswer,
  ): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer') return this.#answerFault(fault, response)
    const [code, text, ratelimit] = this.#refusal ?? []
    this.#refusal = undefined
    if (code !== undefined) return failed(code, text, ratelimit)
    if (form.get('api_type') !== 'json') return this.#violation(400, 'an answer in HTML')
    const body = form.get('text') ?? ''
    if (body.trim() === '') return this.#failed('NO_TEXT', 'we need something here')
    if ([...body].length > 10_000) return this.#failed('TOO_LONG', 'this is too long (max: 10000)')
    const answer = show(body)
    return fault ? resetConnection(response) : answer
  }
  #comment(parent: string, text: string): PlatformAnswer {
    const isMessage = parent.startsWith('t4_')
    const known = this.#delivered.get(parent)
    if (!known && parent !== POST && !this.#shown.find(parent))
      return this.#failed('DELETED_COMMENT', 'that comment has been deleted')
    const data = { ...this.#data(isMessage ? 't4' : 't1'), author: BOT, body: text, parent_id: parent }
    const link = isMessage ? undefined : (known?.link_id ?? POST)
    if (link !== undefined) this.#comments.unshift({ ...data, subreddit: COMMUNITY, link_id: link })
    this.#shown.show({
      id: data.name,
      chatId: isMessage ? `u/${ADA}` : `r/${COMMUNITY}`,
      threadId: link,
      replyTo: parent,
      text,
      files: [],
      buttons: [],
    })
    return { status: 200, body: { json: { errors: [], data: { things: [{ kind: data.name.slice(0, 2), data }] } } } }
  }
  #compose(form: URLSearchParams, text: string): PlatformAnswer {
    if (form.get('to') !== ADA) return this.#failed('USER_DOESNT_EXIST', "that user doesn't exist")
    if (!form.get('subject')) return this.#failed('NO_SUBJECT', 'please enter a subject')
    const id = `t4_${(this.#next++).toString(36)}`
    this.#shown.show({ id, chatId: `u/${ADA}`, text, files: [], buttons: [] })
    return { status: 200, body: { json: { errors: [] } } }
  }
  #answerFault(fault: PlatformFault, response: ServerResponse): PlatformAnswer | undefined {
    if (fault.kind === 'auth') {
      this.expire()
      this.#refusesSignIn = true
    }
    return answerFault(fault, response, {
      rate_limit: (seconds) =>
        refuse(
          429,
          'Too Many Requests',
          {},
          seconds === undefined ? { 'x-ratelimit-reset': '' } : { 'x-ratelimit-reset': String(seconds) },
        ),
      server_error: refuse(500, 'Internal Server Error'),
      permanent: failed('THREAD_LOCKED', 'Comments are locked.'),
      auth: UNAUTHORIZED,
    })
  }

  #failed(code: string, text: string): PlatformAnswer {
    this.violations.push(`${code} ${text}`)
    return failed(code, text)
  }
  #violation(status: number, message: string): PlatformAnswer {
    this.violations.push(message)
    return refuse(status, message)
  }
}

/** With status 200, as forms are refused. */
function failed(code: string, text = '', ratelimit?: number): PlatformAnswer {
  const errors = [[code, text, code.toLowerCase()]]
  return { status: 200, body: { json: { ...(ratelimit !== undefined && { ratelimit }), errors } } }
}
