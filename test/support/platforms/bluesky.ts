import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { jsonToLex, lexicons } from '@atproto/api'
import { allFaults, answerFault } from './faults.ts'
import { resetConnection, Shown, startPlatformServer } from './http.ts'
import type { PlatformAnswer, PlatformCall, PlatformServer } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformFile, PlatformInput } from './platform.ts'

const PASSWORD = 'abcd-efgh-ijkl-mnop'
const BOT = { did: 'did:plc:botbotbotbotbotbotbotbot', handle: 'helper.bsky.test' }
const ADA = { did: 'did:plc:adaadaadaadaadaadaadaada', handle: 'ada.bsky.test', displayName: 'Ada' }
const POSTS = 'app.bsky.feed.post'
const FIRST_MS = 1_763_640_000_000

interface Ref {
  readonly uri: string
  readonly cid: string
}
interface Post extends Ref {
  readonly record: PostRecord
}
interface PostRecord {
  readonly $type: string
  readonly text: string
  readonly createdAt: string
  readonly facets?: readonly unknown[]
  readonly reply?: { readonly root: Ref; readonly parent: Ref }
  readonly embed?: {
    readonly images: readonly { readonly alt: string; readonly image: { readonly ref: { readonly $link: string } } }[]
  }
}
/** As `listNotifications` shows it; a test may change any field. */
export type FakeNotification = Record<string, unknown>

const refuse = (status: number, error: string, message: string, headers = {}): PlatformAnswer => ({
  status,
  body: { error, message },
  headers,
})
const EXPIRED = refuse(400, 'ExpiredToken', 'Token has expired')

/**
 * A server that hosts an account, and the app view behind it: https://atproto.com/specs/xrpc. What it is sent has to
 * fit the lexicons of Bluesky, which are those of its own client.
 */
export class FakeBluesky implements FakePlatform {
  readonly channel = 'bluesky'
  readonly secrets = [PASSWORD, 'jwt-access-', 'jwt-refresh-']
  readonly chats = { direct: BOT.did, group: BOT.did, thread: `at://${ADA.did}/${POSTS}/3kthread222222` }
  readonly hasOnlyGroups = true
  readonly fileKinds: ReadonlySet<PlatformFile['kind']> = new Set(['image'] as const)
  readonly takesFile = ({ kind }: PlatformFile): boolean => kind === 'image'
  readonly person = ADA.did
  readonly redelivers = true
  readonly faults = allFaults
  readonly answersInJson = true
  readonly typing = []
  readonly reactions = []
  readonly violations: string[] = []
  /** Values of `seenAt`. */
  readonly seen: string[] = []
  /** How often the account signed in with its password, and refreshed its session. */
  signIns = 0
  refreshes = 0
  readonly #shown = new Shown()
  readonly #posts = new Map<string, Post>()
  readonly #blobs = new Map<string, Omit<PlatformFile, 'name'>>()
  readonly #notifications: FakeNotification[] = []
  #wake: () => void = () => {}
  #server: PlatformServer | undefined
  #next = 1
  #access = ''
  #refresh = ''
  #refusesSignIn = false
  #drops = false

  static async start(): Promise<FakeBluesky> {
    const fake = new FakeBluesky()
    fake.#server = await startPlatformServer((call, response) => fake.#handle(call, response))
    fake.#posts.set(fake.chats.thread, fake.#post(fake.chats.thread, { text: 'A thread' }))
    return fake
  }

  get origin(): string {
    return this.#server?.origin ?? ''
  }
  get config() {
    return { base_url: this.origin, image_url: `${this.origin}/img`, identifier: BOT.handle, token: PASSWORD }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrong-password' }
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
  /** As after two hours; `all` as when the app password was used anew elsewhere. */
  expire(all = false): void {
    this.#access = 'jwt-none'
    if (all) this.#refresh = 'jwt-none'
  }
  recordOf(uri: string): PostRecord | undefined {
    return this.#posts.get(uri)?.record
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const known = this.#notifications.find(({ uri }) => uri === input.redeliveryOf)
    if (known) return this.list(known)
    const author = input.isOwn ? BOT : ADA
    const uri = `at://${author.did}/${POSTS}/${keyOf(this.#next)}`
    const parent = this.#parentOf(input)
    // In a group nobody is addressed: it is a reply to somebody else, below a post of the account.
    const isMention = input.mentionsBot === true || (!input.isGroup && !parent)
    const mention = `@${BOT.handle}`
    const post = this.#post(uri, {
      text: isMention ? `${mention} ${input.text}` : input.text,
      ...(isMention && { facets: [mentionFacet(mention)] }),
      ...(input.files && { embed: this.#embed(input.files) }),
      ...(parent && { reply: { root: parent.record.reply?.root ?? refOf(parent), parent: refOf(parent) } }),
    })
    return this.list({ ...refOf(post), author, reason: isMention ? 'mention' : 'reply', record: post.record })
  }

  /** Lists a notification; what it does not say is usual. */
  list(notification: FakeNotification): string {
    const listed = {
      author: ADA,
      reason: 'mention',
      isRead: false,
      indexedAt: new Date(FIRST_MS + this.#next++ * 1000).toISOString(),
      ...notification,
    }
    this.#notifications.unshift(listed)
    this.#wake()
    return String(notification['uri'])
  }

  /** What everybody sees of the account: how an app shows a post. */
  #parentOf({ replyTo, threadId, isGroup, mentionsBot }: PlatformInput): Post | undefined {
    const isAddressed = mentionsBot === true || !isGroup
    return this.#posts.get(replyTo ?? threadId ?? (isAddressed ? '' : this.chats.thread))
  }
  #post(uri: string, record: Pick<PostRecord, 'text' | 'facets' | 'reply' | 'embed'>): Post {
    const whole = { $type: POSTS, createdAt: new Date(FIRST_MS + this.#next * 1000).toISOString(), ...record }
    const post = { uri, cid: cidOf(whole), record: whole }
    this.#posts.set(uri, post)
    return post
  }

  #embed(files: readonly PlatformFile[]) {
    const images = files.map((file) => ({ alt: file.name, image: this.#keep(file) }))
    return { $type: 'app.bsky.embed.images', images }
  }
  #keep({ bytes, mime }: Pick<PlatformFile, 'bytes' | 'mime'>) {
    const cid = cidOf([...bytes], 0x55)
    this.#blobs.set(cid, { bytes, mime, kind: 'image' })
    return { $type: 'blob', ref: { $link: cid }, mimeType: mime, size: bytes.length }
  }

  #handle(call: PlatformCall, response: ServerResponse): PlatformAnswer | undefined {
    const picture = new RegExp(`^/img/${ADA.did}/(\\w+)@jpeg$`).exec(call.url.pathname)?.[1]
    if (picture !== undefined) return this.#showPicture(picture, call)
    const method = call.url.pathname.replace(/^\/xrpc\//, '')
    const body = call.json as Record<string, unknown> | undefined
    if (method === 'com.atproto.server.createSession') return this.#createSession(body)
    const token = call.headers.authorization?.replace(/^Bearer /, '')
    if (method === 'com.atproto.server.refreshSession') return this.#refreshSession(token)
    if (token === undefined) return this.#violation(401, 'AuthMissing', 'Authentication Required')
    if (token !== this.#access) return EXPIRED
    const invalid = invalidity(method, call)
    if (invalid !== undefined) return this.#violation(400, 'InvalidRequest', invalid)
    const { searchParams: query } = call.url
    switch (`${call.method} ${method}`) {
      case 'GET com.atproto.server.getSession':
        return { status: 200, body: { ...BOT, email: 'helper@bsky.test', active: true } }
      case 'GET app.bsky.notification.listNotifications':
        return this.#list(query, response)
      case 'POST app.bsky.notification.updateSeen':
        this.seen.push(String(body?.['seenAt']))
        return { status: 200 }
      case 'GET app.bsky.feed.getPosts':
        return { status: 200, body: { posts: query.getAll('uris').flatMap((uri) => this.#view(uri)) } }
      case 'GET com.atproto.repo.getRecord':
        return this.#getRecord(query)
      case 'POST com.atproto.repo.uploadBlob':
        return {
          status: 200,
          body: { blob: this.#keep({ bytes: call.bytes, mime: call.headers['content-type'] ?? '' }) },
        }
      case 'POST com.atproto.repo.putRecord':
        return this.#put(body ?? {}, response)
      case 'POST com.atproto.repo.createRecord':
        return this.#put(
          {
            rkey: keyOf(this.#next++),
            ...body,
          },
          response,
        )
      default:
        return this.#violation(501, 'MethodNotImplemented', method)
    }
  }

  /** Everybody may see it, and nobody has to say who they are. */
  #showPicture(cid: string, { headers }: PlatformCall): PlatformAnswer {
    const blob = this.#blobs.get(cid)
    if (headers.authorization !== undefined) return this.#violation(400, 'InvalidRequest', 'a token for the pictures')
    return blob
      ? { status: 200, body: new Uint8Array(blob.bytes), headers: { 'content-type': 'image/jpeg' } }
      : { status: 404 }
  }

  #createSession(body: Record<string, unknown> | undefined): PlatformAnswer {
    const isRefused = this.#refusesSignIn
    this.#refusesSignIn = false
    this.signIns++
    if (isRefused || body?.['identifier'] !== BOT.handle || body['password'] !== PASSWORD)
      return refuse(401, 'AuthenticationRequired', 'Invalid identifier or password')
    return this.#session()
  }
  #refreshSession(token: string | undefined): PlatformAnswer {
    if (token !== this.#refresh) return EXPIRED
    this.refreshes++
    return this.#session()
  }
  #session(): PlatformAnswer {
    this.#access = `jwt-access-${this.#next++}`
    this.#refresh = `jwt-refresh-${this.#next++}`
    return { status: 200, body: { ...BOT, accessJwt: this.#access, refreshJwt: this.#refresh, active: true } }
  }

  #list(query: URLSearchParams, response: ServerResponse): PlatformAnswer | undefined {
    if (this.#drops) {
      this.#drops = false
      return resetConnection(response)
    }
    const reasons = query.getAll('reasons')
    const limit = Number(query.get('limit') ?? 50)
    const from = Number(query.get('cursor') ?? 0)
    const all = this.#notifications
      .filter(({ reason }) => reasons.length === 0 || reasons.includes(String(reason)))
      .toSorted((one, other) => String(other['indexedAt']).localeCompare(String(one['indexedAt'])))
    const page = all.slice(from, from + limit)
    const more = from + limit < all.length ? { cursor: String(from + limit) } : {}
    return { status: 200, body: { notifications: page, ...more } }
  }

  #view(uri: string): readonly object[] {
    const post = this.#posts.get(uri)
    return post ? [{ ...post, author: ADA, indexedAt: post.record.createdAt }] : []
  }
  #getRecord(query: URLSearchParams): PlatformAnswer {
    const uri = `at://${query.get('repo')}/${query.get('collection')}/${query.get('rkey')}`
    const post = this.#posts.get(uri)
    return post
      ? { status: 200, body: { ...refOf(post), value: post.record } }
      : refuse(400, 'RecordNotFound', `Could not locate record: ${uri}`)
  }

  #put(body: Record<string, unknown>, response: ServerResponse): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer') return this.#answerFault(fault, response)
    const { repo, collection, rkey, record, swapRecord } = body
    if (repo !== BOT.did && repo !== BOT.handle)
      return this.#violation(401, 'AuthenticationRequired', 'another account')
    if (collection !== POSTS) return this.#violation(400, 'InvalidRequest', 'another collection')
    // As of any record whose lexicon says so.
    if (!/^[2-7a-j][2-7a-z]{12}$/.test(String(rkey)))
      return this.#violation(400, 'InvalidRequest', 'TID syntax not valid')
    const invalid = invalidRecord(record)
    if (invalid !== undefined) return this.#violation(400, 'InvalidRequest', `Invalid ${POSTS} record: ${invalid}`)
    const post = { uri: `at://${BOT.did}/${POSTS}/${String(rkey)}`, cid: cidOf(record), record: record as PostRecord }
    const { reply, text, embed } = post.record
    for (const ref of reply ? [reply.root, reply.parent] : [])
      if (this.#posts.get(ref.uri)?.cid !== ref.cid) return this.#violation(400, 'InvalidRequest', 'a reply to nothing')
    const earlier = this.#posts.get(post.uri)
    if (earlier && earlier.cid !== post.cid) {
      if (swapRecord === null) return refuse(400, 'InvalidSwap', `Record was at ${earlier.cid}`)
      return this.#violation(400, 'InvalidRequest', 'a post was replaced')
    }
    this.#posts.set(post.uri, post)
    this.#shown.show({
      id: post.uri,
      key: post.uri,
      chatId: BOT.did,
      threadId: reply?.root.uri,
      replyTo: reply?.parent.uri,
      text,
      files: (embed?.images ?? []).flatMap(({ alt, image }) => {
        const blob = this.#blobs.get(image.ref.$link)
        return blob ? [{ ...blob, name: alt }] : []
      }),
      buttons: [],
    })
    return fault ? resetConnection(response) : { status: 200, body: { ...refOf(post), validationStatus: 'valid' } }
  }
  #answerFault(fault: PlatformFault, response: ServerResponse): PlatformAnswer | undefined {
    if (fault.kind === 'auth') {
      this.expire(true)
      this.#refusesSignIn = true
    }
    return answerFault(fault, response, {
      rate_limit: (seconds) =>
        refuse(
          429,
          'RateLimitExceeded',
          'Rate Limit Exceeded',
          seconds === undefined ? {} : { 'ratelimit-reset': String(Math.floor(Date.now() / 1000 + seconds)) },
        ),
      server_error: refuse(500, 'InternalServerError', 'Internal Server Error'),
      permanent: refuse(400, 'InvalidRequest', 'Invalid app.bsky.feed.post record'),
      auth: EXPIRED,
    })
  }

  #violation(status: number, error: string, message: string): PlatformAnswer {
    this.violations.push(`${error} ${message}`)
    return refuse(status, error, message)
  }
}

/** Why the lexicons do not allow a request. */
function invalidity(method: string, { json, url }: PlatformCall): string | undefined {
  try {
    if (json !== undefined) {
      lexicons.assertValidXrpcInput(method, json)
      return undefined
    }
    const { searchParams: query } = url
    const values = [...new Set(query.keys())].map((name) => [name, valueOf(name, query.getAll(name))])
    lexicons.assertValidXrpcParams(method, Object.fromEntries(values))
    return undefined
  } catch (error) {
    return String(error)
  }
}
function valueOf(name: string, values: readonly string[]): unknown {
  if (name === 'limit') return Number(values[0])
  return name === 'reasons' || name === 'uris' ? values : values[0]
}
function invalidRecord(record: unknown): string | undefined {
  try {
    lexicons.assertValidRecord(POSTS, jsonToLex(record as never))
    return undefined
  } catch (error) {
    return String(error)
  }
}

/** A key of the form that those of posts have. */
const keyOf = (number: number): string =>
  `3k${String(number)
    .replaceAll(/\d/g, (digit) => 'abcdefghij'.charAt(Number(digit)))
    .padStart(11, '2')}`
const refOf = ({ uri, cid }: Ref): Ref => ({ uri, cid })

export function mentionFacet(text: string, start = 0): object {
  return {
    index: { byteStart: start, byteEnd: start + Buffer.byteLength(text) },
    features: [{ $type: 'app.bsky.richtext.facet#mention', did: BOT.did }],
  }
}

/** Of the form that a CID has: version 1, with the hash of the text instead of the block. */
function cidOf(record: unknown, codec = 0x71): string {
  const hash = createHash('sha256').update(JSON.stringify(record)).digest()
  let bits = ''
  for (const byte of [0x01, codec, 0x12, 0x20, ...hash]) bits += byte.toString(2).padStart(8, '0')
  const signs = bits.match(/.{1,5}/g) ?? []
  return `b${signs.map((five) => 'abcdefghijklmnopqrstuvwxyz234567'.charAt(Number.parseInt(five.padEnd(5, '0'), 2))).join('')}`
}
