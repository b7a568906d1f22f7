import { createHash, createHmac } from 'node:crypto'
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

const KEY = 'fake714552c6148e1617aeab526d0606184b94a80ec048fc09894ff1a72b740c5f19'
const SECRET = 'fake-webhook-secret'
const BOT = { id: 5, username: 'Svc', name: 'Helper' }
const ADA = { id: 8, username: 'ada', name: 'Ada' }
const CATEGORY = 7
const TOPIC = { id: 42, title: 'Ferries of the harbour', archetype: 'regular', category_id: CATEGORY }
const PRIVATE = { id: 77, title: 'A question', archetype: 'private_message', users: [ADA, BOT], groups: [] }
const PAGE = 50
const FILLER = /(?:\n\n)?(?:&#8203;)+$/

interface Topic {
  readonly id: number
  readonly title: string
  readonly archetype: string
  readonly category_id?: number
  readonly users?: readonly { readonly username: string }[]
  readonly groups?: readonly { readonly name: string }[]
}
interface Post {
  readonly id: number
  readonly topic_id: number
  readonly post_number: number
  readonly username: string
  readonly raw: string
  readonly version: number
  readonly [field: string]: unknown
}
export type PostInput = Partial<Post> & Readonly<Record<string, unknown>>

/** A forum: https://docs.discourse.org. Ada writes; the bot is a plain user. */
export class FakeDiscourse implements FakePlatform {
  readonly channel = 'discourse'
  readonly secrets = [KEY, SECRET]
  readonly chats = { direct: `pm:${PRIVATE.id}`, group: `category:${CATEGORY}`, thread: String(TOPIC.id) }
  readonly person = String(ADA.id)
  readonly redelivers = true
  readonly faults = allFaults
  readonly removes = true
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  readonly disconnect?: () => Promise<void>
  readonly forgeries?: () => readonly PlatformRequest[]
  /** Requests, by method and path. */
  readonly calls: string[] = []
  readonly #isWebhook: boolean
  readonly #shown = new Shown()
  readonly #topics = new Map<number, Topic>([TOPIC, PRIVATE].map((topic) => [topic.id, topic]))
  readonly #posts: Post[] = []
  readonly #files = new Map<string, PlatformFile>()
  /** Answers to requests of the last two minutes. */
  readonly #answers = new Map<string, PlatformAnswer>()
  #server: PlatformServer | undefined
  #target: WebhookTarget | undefined
  #wake = (): void => {}
  #revoked = 0
  #isDown = false
  #answer: PlatformAnswer | undefined
  #next = 1

  private constructor(isWebhook: boolean) {
    this.#isWebhook = isWebhook
    if (isWebhook) this.forgeries = () => this.#forgeries()
    else
      this.disconnect = async () => {
        this.#isDown = true
        this.#wake()
      }
  }
  static async start({ webhook = false } = {}): Promise<FakeDiscourse> {
    const fake = new FakeDiscourse(webhook)
    fake.#server = await startPlatformServer((call, response) => fake.#handle(call, response))
    return fake
  }

  get origin(): string {
    return this.#server?.origin ?? ''
  }
  get config() {
    const base = { token: KEY, base_url: this.origin, api_username: 'svc' }
    return this.#isWebhook ? { ...base, webhook_secret: SECRET } : base
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrongdiscoursekey' }
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
  setWake(wake: () => Promise<void>): void {
    this.#wake = wake
  }
  /** The next post is refused with this answer. */
  answerNext(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): void {
    this.#answer = { status, body, headers }
  }
  /** More than two minutes go by. */
  forgetAnswers(): void {
    this.#answers.clear()
  }
  addTopic(topic: Topic): void {
    this.#topics.set(topic.id, topic)
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const known = this.#posts.find((post) => nameOf(post) === (input.editOf ?? input.redeliveryOf))
    if (known && input.editOf !== undefined) {
      this.change(known.id, { raw: input.text, version: known.version + 1 })
      await this.#tell('post_edited', known.id)
    } else if (known) await this.#tell('post_created', known.id)
    if (known) return nameOf(known)
    const isGroup = input.isGroup === true || input.threadId !== undefined
    const links = (input.files ?? []).map((file) => linkOf(file, this.#keep(file)))
    const text = input.mentionsBot ? `@svc ${input.text}` : input.text
    const number = input.replyTo?.split('/')[1]
    const post = this.write({
      topic_id: isGroup ? TOPIC.id : PRIVATE.id,
      raw: [text, ...links].join('\n'),
      ...(input.isOwn ? authorOf(BOT) : authorOf(ADA)),
      ...(number !== undefined && { reply_to_post_number: Number(number) }),
    })
    await this.#tell('post_created', post.id)
    return nameOf(post)
  }

  /** A post of any form. */
  write(given: PostInput): Post {
    const topic = given.topic_id ?? TOPIC.id
    const answered = this.#posts.find(
      (post) => post.topic_id === topic && post.post_number === given['reply_to_post_number'],
    )
    const post: Post = {
      id: 1000 + this.#next++,
      topic_id: topic,
      post_number: this.#posts.filter((each) => each.topic_id === topic).length + 1,
      post_type: 1,
      ...authorOf(ADA),
      username: ADA.username,
      created_at: '2026-11-20T12:00:00.000Z',
      cooked: '<p>…</p>',
      raw: '',
      version: 1,
      ...(answered && { reply_to_user: { username: answered.username } }),
      ...given,
    }
    this.#posts.push(post)
    return post
  }
  change(id: number, more: PostInput): void {
    const index = this.#posts.findIndex((post) => post.id === id)
    const post = this.#posts[index]
    if (post) this.#posts[index] = { ...post, ...more }
  }

  async #tell(event: string, id: number): Promise<void> {
    if (!this.#isWebhook) {
      // Not waited for: there may be nobody who asks.
      this.#wake()
      return
    }
    const post = this.#posts.find((each) => each.id === id)
    const answer = await this.#target?.(this.signed({ post }, { event }))
    if (answer?.status !== 200) throw new Error(`the webhook answered ${answer?.status}`)
  }
  /** A request that the forum signed. */
  signed(body: unknown, { secret = SECRET, event = 'post_created' } = {}): PlatformRequest {
    const bytes = Buffer.from(JSON.stringify(body))
    const headers = {
      'content-type': 'application/json',
      'x-discourse-instance': this.origin,
      'x-discourse-event-id': String(this.#next++),
      'x-discourse-event-type': event.split('_')[0] ?? '',
      'x-discourse-event': event,
      'x-discourse-event-signature': `sha256=${createHmac('sha256', secret).update(bytes).digest('hex')}`,
    }
    return { method: 'POST', headers, body: bytes }
  }
  #forgeries(): readonly PlatformRequest[] {
    const { id } = this.write({ raw: 'forged', topic_id: PRIVATE.id, hidden: true })
    const good = this.signed({ post: { id } })
    const { 'x-discourse-event-signature': signature = '', ...unsigned } = good.headers
    return [
      { ...good, headers: unsigned },
      { ...good, headers: { ...unsigned, 'x-discourse-event-signature': signature.replace('sha256=', '') } },
      this.signed({ post: { id } }, { secret: 'another-secret-1' }),
      { ...good, body: Buffer.from(`${Buffer.from(good.body).toString()} `) },
    ]
  }

  async #handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { method, url, headers } = call
    const path = url.pathname
    const [, file] = /^\/uploads\/short-url\/(.+)$/.exec(path) ?? []
    if (file !== undefined) return this.#download(call, file)
    this.calls.push(`${method} ${path}`)
    if (headers['api-key'] !== KEY || headers['api-username'] !== 'svc' || this.#revoked > 0) {
      this.#revoked = Math.max(0, this.#revoked - 1)
      return noAccess('You are not permitted to view the requested resource. The API username or key is invalid.')
    }
    const route = `${method} ${path}`
    if (route === 'GET /u/svc.json')
      return { status: 200, body: { user: { ...BOT, groups: [{ id: 10, name: 'helpers' }] } } }
    if (route === 'GET /posts.json') return this.#list('latest_posts', url)
    if (route === 'GET /private-posts.json') return this.#list('private_posts', url)
    if (route === 'POST /posts.json') return this.#create(call, response)
    if (route === 'POST /uploads.json') return this.#upload(call)
    const [, topic] = /^GET \/t\/(\d+)\.json$/.exec(route) ?? []
    if (topic !== undefined) return this.#describe(this.#topics.get(Number(topic)))
    return this.#ofPost(call, path)
  }

  #list(root: 'latest_posts' | 'private_posts', url: URL): PlatformAnswer {
    if (this.#isDown) {
      this.#isDown = false
      return { status: 503, body: '<html>' }
    }
    const before = Number(url.searchParams.get('before') ?? Number.MAX_SAFE_INTEGER)
    const isPrivate = root === 'private_posts'
    const posts = this.#posts
      .filter(({ topic_id: id, id: post }) => this.#isPrivate(id) === isPrivate && post < before)
      .toSorted((one, other) => other.id - one.id)
      .slice(0, PAGE)
      .map((post) => {
        const { title, category_id: category } = this.#topics.get(post.topic_id) ?? {}
        return { ...post, topic_title: title, ...(category !== undefined && { category_id: category }) }
      })
    return { status: 200, body: { [root]: posts } }
  }
  #isPrivate(topic: number): boolean {
    return this.#topics.get(topic)?.archetype === 'private_message'
  }
  #describe(topic: Topic | undefined): PlatformAnswer {
    if (!topic) return missing
    const { users = [], groups = [], ...rest } = topic
    return { status: 200, body: { ...rest, details: { allowed_users: users, allowed_groups: groups } } }
  }

  async #create(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const request = Buffer.from(call.bytes).toString()
    const memoized = this.#answers.get(request)
    if (memoized) return memoized
    const fault = this.#shown.takeFault()
    if (fault?.kind === 'auth') {
      this.#revoked = 1
      return noAccess('The API username or key is invalid.')
    }
    if (fault && fault.kind !== 'lost_answer') return answerFault(fault, response, FAULT_ANSWERS)
    const answer = this.#answer
    this.#answer = undefined
    if (answer) return answer
    const { topic_id: topic, raw = '', reply_to_post_number: answered } = call.json as PostInput
    if (typeof topic !== 'number' || !this.#topics.has(topic)) return this.#refuse('a topic that is none')
    const wrong = wrongOf(raw)
    if (wrong !== undefined) return this.#refuse(wrong)
    if (this.#posts.some((post) => post.username === BOT.username && post.raw === raw)) return TOO_SIMILAR
    const post = this.write({ topic_id: topic, raw, ...authorOf(BOT), reply_to_post_number: answered })
    this.#shown.show({
      id: nameOf(post),
      chatId: this.#isPrivate(topic) ? `pm:${topic}` : `category:${CATEGORY}`,
      threadId: this.#isPrivate(topic) ? undefined : String(topic),
      text: raw.replace(FILLER, ''),
      replyTo: typeof answered === 'number' ? `${topic}/${answered}` : undefined,
      files: this.#filesOf(raw),
      buttons: [],
    })
    const created = { status: 200, body: post }
    this.#answers.set(request, created)
    return fault ? resetConnection(response) : created
  }

  #ofPost(call: PlatformCall, path: string): PlatformAnswer {
    const [, topic, number] = /^\/posts\/by_number\/(\d+)\/(\d+)\.json$/.exec(path) ?? []
    const [, id] = /^\/posts\/(\d+)\.json$/.exec(path) ?? []
    const name = topic === undefined ? undefined : `${topic}/${number}`
    const post = this.#posts.find((each) => (name === undefined ? String(each.id) === id : nameOf(each) === name))
    if (!post) return missing
    if (call.method === 'GET') return { status: 200, body: post }
    if (post.username !== BOT.username) return noAccess('You are not permitted to view the requested resource.')
    if (call.method === 'DELETE') {
      this.#posts.splice(this.#posts.indexOf(post), 1)
      this.#shown.remove(nameOf(post))
      return { status: 200 }
    }
    const { post: { raw = '' } = {} } = call.json as { post?: { raw?: string } }
    const wrong = wrongOf(raw)
    if (wrong !== undefined) return this.#refuse(wrong)
    this.change(post.id, { raw, version: post.version + 1 })
    this.#shown.edit(nameOf(post), raw.replace(FILLER, ''))
    return { status: 200, body: { post: { ...post, raw } } }
  }

  async #upload(call: PlatformCall): Promise<PlatformAnswer> {
    const form = await call.form()
    const file = form.get('file')
    if (!(file instanceof File) || form.get('type') !== 'composer') return this.#refuse('an upload that is none')
    const key = this.#keep(await fileOf(file))
    return { status: 200, body: { id: 1, original_filename: file.name, short_url: `upload://${key}` } }
  }
  /** The same content has the same name. */
  #keep(file: PlatformFile): string {
    const hash = createHash('sha1').update(file.bytes).update(file.name).digest('hex')
    const key = `${hash}.${file.name.split('.').at(-1)}`
    this.#files.set(key, file)
    return key
  }
  #filesOf(raw: string): readonly PlatformFile[] {
    return [...raw.matchAll(/\(upload:\/\/([\w.]+)\)/g)].flatMap(([, key = '']) => this.#files.get(key) ?? [])
  }
  /** The files are in a store elsewhere, which is asked without the key. */
  #download({ headers, url }: PlatformCall, key: string): PlatformAnswer {
    if (headers['api-key'] !== undefined) this.violations.push('the key was sent for a file')
    const file = this.#files.get(key)
    if (!file) return missing
    if (!url.searchParams.has('stored'))
      return { status: 302, headers: { location: `${this.origin}/uploads/short-url/${key}?stored=1` } }
    return { status: 200, body: file.bytes, headers: { 'content-type': file.mime } }
  }

  #refuse(what: string): PlatformAnswer {
    this.violations.push(what)
    return { status: 422, body: { action: 'create_post', errors: [what] } }
  }
}

const nameOf = ({ topic_id: topic, post_number: number }: Post): string => `${topic}/${number}`
const authorOf = ({ id, username, name }: typeof ADA) => ({ user_id: id, username, name })

function linkOf({ name, kind, bytes }: PlatformFile, key: string): string {
  return kind === 'image'
    ? `![${name}|1x1](upload://${key})`
    : `[${name}|attachment](upload://${key}) (${bytes.length} Bytes)`
}

/** Comments and repeated dots do not count. */
function wrongOf(raw: string): string | undefined {
  const { length } = [
    ...raw
      .replaceAll(/<!--.*?-->/g, '')
      .replaceAll(/\.{2,}/g, '…')
      .trim(),
  ]
  if (length < 20) return 'Body is too short (minimum is 20 characters)'
  if (length > 32_000) return 'Body is limited to 32000 characters'
  return /(?:^|\s)@\w/.test(raw) ? 'a mention' : undefined
}

const missing: PlatformAnswer = {
  status: 404,
  body: { errors: ['The requested URL or resource could not be found.'], error_type: 'not_found' },
}
function noAccess(error: string): PlatformAnswer {
  return { status: 403, body: { errors: [error], error_type: 'invalid_access' } }
}
const TOO_SIMILAR: PlatformAnswer = {
  status: 422,
  body: { action: 'create_post', errors: ['Body is too similar to what you recently posted'] },
}
/** How the forum says what went wrong. */
const FAULT_ANSWERS = {
  rate_limit: (seconds: number | undefined): PlatformAnswer => ({
    status: 429,
    body: {
      errors: ['You’ve performed this action too many times.'],
      error_type: 'rate_limit',
      ...(seconds !== undefined && { extras: { wait_seconds: seconds, time_left: `${seconds} seconds` } }),
    },
  }),
  server_error: { status: 502, body: '<html>' },
  permanent: noAccess('You are not permitted to view the requested resource.'),
  // Answered before.
  auth: noAccess(''),
}
