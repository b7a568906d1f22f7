import type { IncomingMessage, ServerResponse } from 'node:http'
import { allFaults, answerFault, fileOf } from './faults.ts'
import { resetConnection, Shown } from './http.ts'
import type { PlatformAnswer, PlatformCall } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformFile, PlatformInput } from './platform.ts'
import { Presence, startSocketServer } from './sockets.ts'
import type { Peer, PeerHandlers } from './sockets.ts'

const TOKEN = 'fakemastodontoken_ZA-Yj3aBD8U8Cm7lKUp'
const DOMAIN = 'mastodon.test'
const BOT = account('109', 'svc', { bot: true })
const ADA = account('110', 'ada', {})
const VISIBILITIES = new Set(['public', 'unlisted', 'private', 'direct'])
const MAX_CHARACTERS = 500
const TAKEN = ['image/png', 'image/jpeg', 'image/gif', 'video/mp4', 'audio/mpeg']

function account(id: string, acct: string, more: { readonly bot?: boolean }) {
  const [username = ''] = acct.split('@')
  return {
    id,
    username,
    acct,
    display_name: username === 'ada' ? 'Ada' : '',
    bot: false,
    url: `https://${DOMAIN}/@${acct}`,
    ...more,
  }
}
type Account = ReturnType<typeof account>

interface Status {
  readonly id: string
  readonly created_at: string
  readonly account: Account
  readonly content: string
  readonly spoiler_text: string
  readonly visibility: string
  readonly in_reply_to_id: string | null
  readonly media_attachments: readonly object[]
}
interface Upload {
  readonly id: string
  readonly file: PlatformFile
  isProcessed: boolean
  isAttached: boolean
}
interface Body {
  status?: string
  in_reply_to_id?: string
  visibility?: string
  media_ids?: string[]
}
/** What a person writes besides what all platforms have. */
export interface Post extends PlatformInput {
  readonly visibility?: string
  readonly from?: Account
  readonly warning?: string
  readonly html?: string
}

export interface FakeMastodon extends FakePlatform {
  post(post: Post): Promise<string>
  /** Somebody of another server. */
  readonly person2: Account
  /** The next event is lost on the way to the stream. */
  dropNextEvent(): void
  sendFrame(frame: unknown): void
  /** Files are ready after they were asked for. */
  processSlowly(): void
  /** The instance names this address for streaming. */
  nameStreaming(address: string): void
  visibilityOf(id: string): string | undefined
  readonly requests: readonly string[]
}

/** Mastodon 4. Source: https://docs.joinmastodon.org/, and the code of github.com/mastodon/mastodon. */
export async function startFakeMastodon(): Promise<FakeMastodon> {
  const fake = new Mastodon()
  const server = await startSocketServer(
    (call, response) => fake.handle(call, response),
    (peer, request) => fake.accept(peer, request),
  )
  fake.origin = server.origin
  return Object.assign(fake, { [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() })
}

class Mastodon implements Omit<FakeMastodon, typeof Symbol.asyncDispose> {
  readonly channel = 'mastodon'
  readonly secrets = [TOKEN]
  readonly chats = { direct: ADA.id }
  readonly person = ADA.id
  readonly person2 = account('111', 'ada@elsewhere.test', {})
  readonly redelivers = true
  readonly faults = allFaults
  readonly removes = true
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  readonly requests: string[] = []
  origin = ''
  readonly #shown = new Shown()
  readonly #statuses = new Map<string, Status>()
  readonly #notifications: { readonly id: string; readonly type: string; readonly account: Account; status: Status }[] =
    []
  readonly #uploads = new Map<string, Upload>()
  readonly #listener = new Presence<Peer>()
  #next = 1000
  #isDropping = false
  #isSlow = false
  #streaming: string | undefined

  get config() {
    return { token: TOKEN, base_url: this.origin }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrongmastodontoken' }
  }
  get sent() {
    return this.#shown.sent
  }
  waitForSent = (count: number) => this.#shown.waitForSent(count)
  fail = (fault: PlatformFault) => this.#shown.fail(fault)
  setWebhook = () => {}
  takesFile = ({ mime }: PlatformFile) => TAKEN.includes(mime)
  dropNextEvent(): void {
    this.#isDropping = true
  }
  sendFrame(frame: unknown): void {
    this.#listener.value?.send(frame)
  }
  processSlowly(): void {
    this.#isSlow = true
  }
  nameStreaming(address: string): void {
    this.#streaming = address
  }
  visibilityOf = (id: string) => this.#statuses.get(id)?.visibility
  async waitForListener(): Promise<void> {
    await this.#listener.wait()
  }
  async disconnect(): Promise<void> {
    const peer = await this.#listener.wait()
    this.#listener.set(undefined)
    peer.cut()
  }

  deliver = (input: PlatformInput) => this.post(input)

  async post(input: Post): Promise<string> {
    const known = this.#notifications.find(({ status }) => status.id === input.redeliveryOf)
    if (known) {
      this.#emit('notification', known)
      return known.status.id
    }
    const { visibility = 'direct', from = ADA, replyTo = null, warning = '', html } = input
    const author = input.isOwn ? BOT : from
    const status: Status = {
      id: this.#id(),
      created_at: new Date(1_763_640_000_000 + this.#next).toISOString(),
      account: author,
      content: html ?? render(`@${BOT.username} ${input.text}`),
      spoiler_text: warning,
      visibility,
      in_reply_to_id: replyTo,
      media_attachments: (input.files ?? []).map((file) => this.#media(this.#keep(file))),
    }
    this.#statuses.set(status.id, status)
    // Nobody is told of what they wrote themselves.
    if (author !== BOT) this.#notify('mention', author, status)
    return status.id
  }

  #notify(type: string, by: Account, status: Status): void {
    const notification = { id: this.#id(), type, created_at: status.created_at, account: by, status }
    this.#notifications.push(notification)
    this.#emit('notification', notification)
  }

  #emit(event: string, payload: object): void {
    if (this.#isDropping) {
      this.#isDropping = false
      return
    }
    this.#listener.value?.send({ stream: ['user:notification'], event, payload: JSON.stringify(payload) })
  }

  #id(): string {
    return String(this.#next++)
  }

  #keep(file: PlatformFile, isProcessed = true): Upload {
    const upload = { id: this.#id(), file, isProcessed, isAttached: false }
    this.#uploads.set(upload.id, upload)
    return upload
  }
  #media({ id, file, isProcessed }: Upload) {
    const extension = file.name.split('.').at(-1)
    const type = TAKEN.includes(file.mime) ? file.kind : 'unknown'
    const url = isProcessed ? `${this.origin}/system/media_attachments/${id}/original.${extension}` : null
    return { id, type, url, preview_url: url, remote_url: null, description: null }
  }

  // The stream

  accept(peer: Peer, request: IncomingMessage): PeerHandlers | number {
    const url = new URL(request.url ?? '/', this.origin)
    const { authorization } = request.headers
    const token = authorization?.replace(/^Bearer /, '') ?? request.headers['sec-websocket-protocol']
    if (url.searchParams.has('access_token')) this.violations.push('the token is in the address of the stream')
    if (url.pathname !== '/api/v1/streaming' || token !== TOKEN) return 4000
    const subscribe = (stream: string | null): void => {
      if (stream === 'user:notification') this.#listener.set(peer)
      else if (stream !== null) peer.send({ error: 'Error: Unknown stream type', status: 400 })
    }
    subscribe(url.searchParams.get('stream'))
    return {
      frame: (raw) => {
        const { type, stream = null } = (raw ?? {}) as { type?: string; stream?: string }
        if (type === 'subscribe') subscribe(stream)
      },
      closed: () => this.#listener.remove(peer),
    }
  }

  // The API

  async handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { method, url, headers } = call
    const [, fileId] = /^\/system\/media_attachments\/(\d+)\//.exec(url.pathname) ?? []
    if (fileId !== undefined) return this.#file(fileId, headers.authorization)
    if (headers.authorization !== `Bearer ${TOKEN}`) return problem(401, 'The access token is invalid')
    const route = `${method} ${url.pathname.replace(/^\/api/, '')}`
    this.requests.push(route)
    if (route === 'POST /v1/statuses') return this.#create(call, response)
    if (route === 'POST /v2/media') return this.#upload(call)
    if (route === 'GET /v1/notifications') return this.#list(url.searchParams)
    if (route === 'GET /v1/accounts/verify_credentials') return { status: 200, body: BOT }
    if (route === 'GET /v2/instance') return { status: 200, body: this.#describe() }
    const [, verb = '', id = '', rest = ''] =
      /^(\w+) \/v1\/(?:statuses|accounts|media)\/(\d+)(\/context)?$/.exec(route) ?? []
    return this.#ofId(`${verb}${rest}`, route, id) ?? problem(404, 'Record not found')
  }

  #describe() {
    const streaming = this.#streaming ?? this.origin.replace(/^http/, 'ws')
    return {
      domain: DOMAIN,
      version: '4.5.0',
      configuration: {
        urls: { streaming },
        statuses: { max_characters: MAX_CHARACTERS, max_media_attachments: 4, characters_reserved_per_url: 23 },
        media_attachments: { supported_mime_types: TAKEN },
      },
    }
  }

  #ofId(action: string, route: string, id: string): PlatformAnswer | undefined {
    const status = this.#statuses.get(id)
    if (route.includes('/accounts/')) {
      const found = [ADA, BOT, this.person2].find((each) => each.id === id)
      return found && { status: 200, body: found }
    }
    if (route.includes('/media/')) {
      const upload = this.#uploads.get(id)
      if (!upload) return undefined
      const answer = { status: upload.isProcessed ? 200 : 206, body: this.#media(upload) }
      upload.isProcessed = true
      return answer
    }
    if (action === 'GET/context' && status)
      return { status: 200, body: { ancestors: this.#ancestors(status), descendants: [] } }
    if (action !== 'DELETE' || status?.account !== BOT) return undefined
    this.#statuses.delete(id)
    this.#shown.remove(id)
    return { status: 200, body: status }
  }

  #ancestors(status: Status): readonly Status[] {
    const parent = this.#statuses.get(status.in_reply_to_id ?? '')
    return parent ? [...this.#ancestors(parent), parent] : []
  }

  #list(query: URLSearchParams): PlatformAnswer {
    if (query.get('types[]') !== 'mention') this.violations.push('notifications of all types')
    const limit = Number(query.get('limit') ?? 40)
    if (!(limit > 0 && limit <= 80)) this.violations.push('the limit of a list')
    const min = query.get('min_id')
    const mentions = this.#notifications.filter(({ type }) => type === 'mention')
    const page =
      min === null ? mentions.slice(-limit) : mentions.filter(({ id }) => Number(id) > Number(min)).slice(0, limit)
    return { status: 200, body: page.toReversed() }
  }

  #create(call: PlatformCall, response: ServerResponse): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer')
      return answerFault(fault, response, {
        rate_limit: (seconds) => ({
          ...problem(429, 'Too many requests'),
          ...(seconds !== undefined && {
            headers: { 'x-ratelimit-reset': new Date(Date.now() + seconds * 1000).toISOString().replace('Z', '000Z') },
          }),
        }),
        server_error: problem(503, 'There was a temporary problem serving your request, please try again'),
        permanent: problem(422, 'Validation failed: Text character limit of 500 exceeded'),
        auth: problem(401, 'The access token was revoked'),
      })
    const key = call.headers['idempotency-key']
    if (typeof key !== 'string') this.violations.push('a post without a key')
    const earlier = this.sent.find((message) => message.key === key)
    if (earlier) return { status: 200, body: this.#statuses.get(earlier.id) }
    const body = (call.json ?? {}) as Body
    const refusal = this.#refuse(body)
    if (refusal) {
      this.violations.push(refusal)
      return problem(422, `Validation failed: ${refusal}`)
    }
    if (body.in_reply_to_id !== undefined && !this.#statuses.has(body.in_reply_to_id))
      return problem(404, 'Record not found')
    const { id, text } = this.#show(body, String(key))
    const status: Status = {
      id,
      created_at: new Date(1_763_640_000_000 + this.#next).toISOString(),
      account: BOT,
      content: render(text),
      spoiler_text: '',
      visibility: body.visibility ?? 'public',
      in_reply_to_id: body.in_reply_to_id ?? null,
      media_attachments: [],
    }
    this.#statuses.set(id, status)
    return fault ? resetConnection(response) : { status: 200, body: status }
  }

  #refuse({ status = '', visibility = 'public', media_ids: media = [] }: Body): string | undefined {
    const uploads = media.map((id) => this.#uploads.get(id))
    if (status.trim() === '' && media.length === 0) return "Text can't be blank"
    if (lengthOf(status) > MAX_CHARACTERS) return 'Text character limit of 500 exceeded'
    if (!VISIBILITIES.has(visibility)) return 'Visibility is not included in the list'
    if (media.length > 4) return 'Cannot attach more than 4 files'
    if (media.length > 1 && uploads.some((upload) => upload?.file.kind !== 'image'))
      return 'Cannot attach a video to a post that already contains images'
    if (uploads.some((upload) => !upload || upload.isAttached)) return 'a file that was not uploaded'
    if (uploads.some((upload) => upload?.isProcessed === false)) return 'a file that has not finished processing'
    if (visibility === 'direct' && !/@ada(?:@|\b)/.test(status)) return 'a direct post that nobody sees'
    return undefined
  }

  #show({ status = '', in_reply_to_id: replyTo, visibility, media_ids: media = [] }: Body, key: string) {
    const [, acct = '', text = status] = /^@(\S+) ?([^]*)$/.exec(status) ?? []
    const to = [ADA, this.person2].find((each) => each.acct === acct)
    const uploads = media.flatMap((id) => this.#uploads.get(id) ?? [])
    for (const upload of uploads) upload.isAttached = true
    const parent = this.#statuses.get(replyTo ?? '')
    return this.#shown.show({
      id: this.#id(),
      chatId: visibility === 'direct' ? (to?.id ?? '') : 'timeline',
      threadId: parent && visibility !== 'direct' ? (this.#ancestors(parent)[0]?.id ?? parent.id) : undefined,
      text: to ? text : status,
      replyTo,
      files: uploads.map(({ file }) => file),
      buttons: [],
      key,
    })
  }

  async #upload(call: PlatformCall): Promise<PlatformAnswer> {
    const file = (await call.form()).get('file')
    if (!(file instanceof File) || !TAKEN.includes(file.type)) {
      this.violations.push('a file that is not taken')
      return problem(422, 'Validation failed: File content type is invalid')
    }
    const upload = this.#keep(await fileOf(file), !this.#isSlow)
    return { status: this.#isSlow ? 202 : 200, body: this.#media(upload) }
  }

  #file(id: string, authorization: string | undefined): PlatformAnswer {
    if (authorization !== undefined) this.violations.push('the token was sent to the store of files')
    const upload = this.#uploads.get(id)
    return upload
      ? { status: 200, body: new Uint8Array(upload.file.bytes), headers: { 'content-type': upload.file.mime } }
      : problem(404, 'Record not found')
  }
}

/** As the server counts: an address is 23 characters, and the host of a mention is none. */
function lengthOf(text: string): number {
  const counted = text.replaceAll(/https?:\/\/\S+/g, 'x'.repeat(23)).replaceAll(/@(\w+)@[\w.-]+/g, '@$1')
  return [...new Intl.Segmenter().segment(counted)].length
}

/** As the server renders what is written. */
function render(text: string): string {
  const escaped = text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
  const linked = escaped.replace(
    /^@(\w+)/,
    `<span class="h-card"><a href="https://${DOMAIN}/@$1" class="u-url mention">@<span>$1</span></a></span>`,
  )
  return `<p>${linked.replaceAll('\n\n', '</p><p>').replaceAll('\n', '<br />')}</p>`
}

function problem(status: number, error: string): PlatformAnswer {
  return { status, body: { error } }
}
