import type { ServerResponse } from 'node:http'
import { allFaults, answerFault } from './faults.ts'
import { resetConnection, Shown, startPlatformServer } from './http.ts'
import type { PlatformAnswer, PlatformCall, PlatformServer } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformInput } from './platform.ts'

const ORGANIZATION = 'urn:li:organization:2414183'
const ADA = 'urn:li:person:A8xe03Qt10'
const POST = 'urn:li:activity:7094637247890620418'
const VERSION = '202607'
const CLIENT = { id: '78abcdefghijkl', secret: 'WPL_AP1.clientsecret' }
const NAME = 'Harbour Ltd'

const urnOf = (id: number): string => `urn:li:comment:(${POST},${7_094_977_717_598_000_000n + BigInt(id)})`
/** A comment as the API shows it; a test may change any field. */
export type FakeComment = Record<string, unknown> & { readonly commentUrn: string }

const refuse = (status: number, message: string, headers = {}): PlatformAnswer => ({
  status,
  body: { status, serviceErrorCode: status, message },
  headers,
})
const REVOKED = refuse(401, 'The token used in the request has been revoked by the user')

/** The Community Management API: https://learn.microsoft.com/linkedin/marketing/community-management/ */
export class FakeLinkedIn implements FakePlatform {
  readonly channel = 'linkedin'
  readonly secrets = ['AQV-access', 'AQW-refresh', CLIENT.secret]
  readonly chats = { direct: ORGANIZATION, group: ORGANIZATION, thread: urnOf(0) }
  readonly hasOnlyGroups = true
  readonly person = ADA
  readonly redelivers = true
  readonly faults = allFaults
  readonly answersInJson = true
  readonly typing = []
  readonly reactions = []
  readonly violations: string[] = []
  /** Seconds until the token ends. */
  expiresInSecs = 5_184_000
  /** What every request is answered with. */
  refusal: PlatformAnswer | undefined
  refreshes = 0
  readonly #shown = new Shown()
  readonly #comments = new Map<string, FakeComment>()
  readonly #closed = new Set<string>()
  readonly #notifications: { readonly lastModifiedAt: number; readonly [field: string]: unknown }[] = []
  #wake: () => void = () => {}
  #server: PlatformServer | undefined
  #next = 1
  #access = 'AQV-access-0'
  #refresh = 'AQW-refresh-0'
  #refusesRefresh = false
  #drops = false

  static async start(): Promise<FakeLinkedIn> {
    const fake = new FakeLinkedIn()
    fake.#server = await startPlatformServer((call, response) => fake.#handle(call, response))
    fake.#keep(fake.chats.thread, { message: { text: 'the first comment' } })
    return fake
  }

  get origin(): string {
    return this.#server?.origin ?? ''
  }
  get config() {
    return {
      base_url: `${this.origin}/rest`,
      auth_url: `${this.origin}/oauth/v2`,
      token: 'AQV-access-0',
      refresh_token: 'AQW-refresh-0',
      client_id: CLIENT.id,
      client_secret: CLIENT.secret,
      organization: '2414183',
    }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrong', refresh_token: 'wrong' }
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
    this.#wake = wake
  }
  /** Fails the next poll. */
  async disconnect(): Promise<void> {
    this.#drops = true
    this.#wake()
  }
  /** The token ends, as after 60 days. */
  expire(): void {
    this.#access = 'none'
  }
  /** A comment is removed after LinkedIn told of it. */
  remove(urn: string): void {
    this.#comments.delete(urn)
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const { redeliveryOf, threadId, replyTo, isGroup, mentionsBot, isOwn } = input
    if (redeliveryOf !== undefined) return this.notify(redeliveryOf)
    const urn = urnOf(this.#next++)
    const parent = replyTo ?? threadId ?? (isGroup && !mentionsBot ? this.chats.thread : undefined)
    const mention = mentionsBot ? `${NAME}, ` : ''
    const attribute = { start: 0, length: NAME.length, value: { organization: { organization: ORGANIZATION } } }
    this.#keep(urn, {
      actor: isOwn ? ORGANIZATION : ADA,
      message: { text: `${mention}${input.text}`, attributes: mentionsBot ? [attribute] : [] },
      ...(parent !== undefined && { parentComment: parent }),
    })
    return this.notify(urn)
  }

  /** LinkedIn tells of a comment; what is absent is as usual. */
  notify(urn: string, more: Readonly<Record<string, unknown>> = {}): string {
    this.#notifications.push({
      notificationId: 5_603_453_321 + this.#next,
      action: 'COMMENT',
      // Later than the one before, as the list need not be in order.
      lastModifiedAt: Date.now() + this.#next,
      organizationalEntity: ORGANIZATION,
      sourcePost: POST,
      generatedActivity: urn.replace('(urn:li:', '('),
      subscriber: 'urn:li:person:zLqTygBP8S',
      ...more,
    })
    this.#wake()
    return urn
  }
  /** LinkedIn tells of a comment with these fields, or of one that it does not show. */
  tell(fields: Record<string, unknown> | 'closed'): void {
    const urn = urnOf(this.#next++)
    if (fields === 'closed') this.#closed.add(urn)
    else this.#keep(urn, fields)
    this.notify(urn)
  }
  #keep(urn: string, fields: Record<string, unknown>): void {
    const time = Date.parse('2026-11-20T12:00:00Z')
    this.#comments.set(urn, {
      actor: ADA,
      commentUrn: urn,
      object: POST,
      created: { time, actor: ADA },
      ...fields,
    })
  }

  #handle(call: PlatformCall, response: ServerResponse): PlatformAnswer | undefined {
    const { method, url, headers } = call
    const form = new URLSearchParams(Buffer.from(call.bytes).toString())
    if (url.pathname.startsWith('/oauth/v2/')) return this.#auth(`${method} ${url.pathname.slice(10)}`, form)
    if (headers['linkedin-version'] !== VERSION)
      return refuse(426, `Requested version ${headers['linkedin-version']} is not active`)
    if (headers['x-restli-protocol-version'] !== '2.0.0') return this.#violation(400, 'the version of the protocol')
    if (headers.authorization !== `Bearer ${this.#access}`) return REVOKED
    if (this.refusal) return this.refusal
    const path = url.pathname.replace(/^\/rest/, '')
    // Brackets of a URN mean something in an address, so they are encoded.
    if (/[()]/.test(path)) return this.#violation(400, 'Syntax exception in path variables')
    const route = `${method} ${decodeURIComponent(path)}`
    if (route === 'GET /organizations/2414183') return { status: 200, body: { id: 2_414_183, localizedName: NAME } }
    if (route === 'GET /organizationalEntityNotifications') return this.#list(url, response)
    if (route === 'POST /posts') return this.#send(response, () => this.#post(call.json))
    const [, target = '', id] = /^\/socialActions\/(.+?)\/comments(?:\/(\d+))?$/.exec(decodeURIComponent(path)) ?? []
    if (target !== '' && method === 'GET') return this.#comment(`urn:li:comment:(${target},${id})`)
    if (target !== '' && method === 'POST') return this.#send(response, () => this.#reply(target, call.json))
    return this.#violation(404, `No virtual resource found: ${route}`)
  }

  #auth(route: string, form: URLSearchParams): PlatformAnswer {
    const failed = (status: number, error: string): PlatformAnswer => ({
      status,
      body: { error, error_description: error },
    })
    if (form.get('client_id') !== CLIENT.id || form.get('client_secret') !== CLIENT.secret)
      return failed(401, 'invalid_client')
    if (route === 'POST introspectToken') {
      const expires_at = Math.floor(Date.now() / 1000) + this.expiresInSecs
      return { status: 200, body: { active: form.get('token') === this.#access, status: 'active', expires_at } }
    }
    const isRefused = this.#refusesRefresh
    this.#refusesRefresh = false
    if (route !== 'POST accessToken' || form.get('grant_type') !== 'refresh_token')
      return this.#violation(400, 'unsupported_grant_type')
    if (isRefused || form.get('refresh_token') !== this.#refresh) return failed(400, 'invalid_grant')
    this.#access = `AQV-access-${++this.refreshes}`
    return { status: 200, body: { access_token: this.#access, expires_in: 5_184_000, refresh_token: this.#refresh } }
  }

  #list({ search }: URL, response: ServerResponse): PlatformAnswer | undefined {
    if (this.#drops) {
      this.#drops = false
      return resetConnection(response)
    }
    // Read as it is: brackets that are encoded are a text.
    const range = /[?&]timeRange=\(start:(\d+),end:(\d+)\)/.exec(search)
    const isOther = !search.includes(`organizationalEntity=${encodeURIComponent(ORGANIZATION)}`)
    if (!range || isOther || !search.includes('q=criteria') || !search.includes('actions=List(COMMENT)'))
      return this.#violation(400, 'Invalid query parameters passed to request')
    const query = new URLSearchParams(search)
    const start = Number(query.get('start'))
    const count = Number(query.get('count'))
    const found = this.#notifications.filter(({ lastModifiedAt }) => lastModifiedAt >= Number(range[1]))
    return { status: 200, body: { paging: { start, count }, elements: found.toReversed().slice(start, start + count) } }
  }
  #comment(urn: string): PlatformAnswer {
    if (this.#closed.has(urn)) return refuse(403, 'Not enough permissions to access: GET /comments')
    const comment = this.#comments.get(urn)
    return comment ? { status: 200, body: comment } : refuse(404, 'Comment not found')
  }

  #send(response: ServerResponse, show: () => PlatformAnswer): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer') return this.#answerFault(fault, response)
    const answer = show()
    return fault ? resetConnection(response) : answer
  }
  #reply(target: string, body: unknown): PlatformAnswer {
    const { actor, object, parentComment, message } = body as Record<string, unknown>
    const { text } = message as { text: string }
    if (actor !== ORGANIZATION) return this.#violation(403, 'another actor')
    if (object !== POST || parentComment !== target || !this.#comments.has(target))
      return this.#violation(400, 'a comment below nothing')
    if (text === '' || [...text].length > 1250) return this.#violation(400, 'the length of a comment')
    const urn = urnOf(this.#next++)
    const comment = { actor, object, parentComment, message, commentUrn: urn }
    this.#comments.set(urn, { ...comment, created: { time: 0 } })
    this.#shown.show({ id: urn, chatId: ORGANIZATION, threadId: target, replyTo: target, text, files: [], buttons: [] })
    return { status: 201, body: comment, headers: { 'x-restli-id': urn.slice(urn.indexOf(',') + 1, -1) } }
  }
  #post(body: unknown): PlatformAnswer {
    const { author, commentary, visibility, distribution, lifecycleState } = body as Record<string, unknown>
    if (author !== ORGANIZATION || visibility !== 'PUBLIC' || lifecycleState !== 'PUBLISHED' || !distribution)
      return this.#violation(400, 'the fields of a post')
    const text = String(commentary)
    if (/(?<!\\)(?:\\\\)*[|{}@[\]()<>#*_~]/.test(text)) return this.#violation(400, 'a sign that means something')
    const id = `urn:li:share:${7_094_637_247_487_000_000n + BigInt(this.#next++)}`
    const shown = text.replaceAll(/\\(.)/g, '$1')
    this.#shown.show({ id, chatId: ORGANIZATION, text: shown, files: [], buttons: [] })
    return { status: 201, headers: { 'x-restli-id': id } }
  }
  #answerFault(fault: PlatformFault, response: ServerResponse): PlatformAnswer | undefined {
    if (fault.kind === 'auth') this.#refusesRefresh = true
    return answerFault(fault, response, {
      rate_limit: (seconds) =>
        refuse(
          429,
          'Resource level throttle limit for calls to this resource is reached.',
          seconds === undefined ? {} : { 'retry-after': String(seconds) },
        ),
      server_error: refuse(500, 'Internal Server Error'),
      permanent: refuse(400, 'Comments are disabled on this post'),
      auth: REVOKED,
    })
  }

  #violation(status: number, message: string): PlatformAnswer {
    this.violations.push(message)
    return refuse(status, message)
  }
}
