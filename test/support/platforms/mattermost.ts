import type { ServerResponse } from 'node:http'
import { allFaults, answerFault, fileOf, Revocation } from './faults.ts'
import { resetConnection, Shown } from './http.ts'
import type { PlatformAnswer, PlatformCall } from './http.ts'
import type { FakePlatform, PlatformFault, PlatformFile, PlatformInput } from './platform.ts'
import { Presence, startSocketServer } from './sockets.ts'
import type { Peer, PeerHandlers } from './sockets.ts'

const TOKEN = 'fakemattermosttoken0123456'
const BOT = { id: 'botbotbotbotbotbotbotbotbo', username: 'svc', is_bot: true }
const ADA = { id: 'adaadaadaadaadaadaadaadaad', username: 'ada' }
const DIRECT = 'directdirectdirectdirectdi'
const GROUP = 'groupgroupgroupgroupgroupg'
const TEAM = 'teamteamteamteamteamteamte'
const THREAD = 'rootrootrootrootrootrootro'
const MAX_SINCE = 1000
const PER_PAGE = 60
const EMOJI: Readonly<Record<string, string>> = { '+1': '👍', eyes: '👀' }

interface Post {
  readonly id: string
  readonly create_at: number
  readonly update_at: number
  readonly edit_at: number
  readonly delete_at: number
  readonly user_id: string
  readonly channel_id: string
  readonly root_id: string
  readonly message: string
  readonly type: string
  readonly props: object
  readonly file_ids: readonly string[]
  readonly metadata: object
}
interface Body {
  channel_id?: string
  message?: string
  root_id?: string
  pending_post_id?: string
  file_ids?: string[]
  post_id?: string
  user_id?: string
  emoji_name?: string
}

export interface FakeMattermost extends FakePlatform {
  /** The next event is lost on the way. */
  dropNextEvent(): void
  /** Posts that come are later by so much than those before. */
  passTime(ms: number): void
  /** The next request for the posts of the group fails. */
  failNextHistory(): void
  /** A pause that the server names only in `X-RateLimit-Reset`, as seconds or as a time. */
  limitUntil(reset: number): void
}

/** Mattermost's API version 4. Source: https://developers.mattermost.com/api-documentation/ */
export async function startFakeMattermost(): Promise<FakeMattermost> {
  const fake = new Mattermost()
  const server = await startSocketServer(
    (call, response) => fake.handle(call, response),
    (peer, request) => fake.accept(peer, request.url ?? ''),
  )
  fake.origin = server.origin
  return Object.assign(fake, { [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() })
}

class Mattermost implements Omit<FakeMattermost, typeof Symbol.asyncDispose> {
  readonly channel = 'mattermost'
  readonly secrets = [TOKEN]
  readonly chats = { direct: DIRECT, group: GROUP, thread: THREAD }
  readonly person = ADA.id
  readonly redelivers = true
  readonly revocation = new Revocation()
  readonly faults = allFaults
  readonly removes = true
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  origin = ''
  readonly #shown = new Shown()
  readonly #posts = new Map<string, Post>()
  readonly #files = new Map<string, PlatformFile>()
  readonly #listener = new Presence<{ peer: Peer; seq: number }>()
  #next = 1
  #reset: number | undefined
  #isDropping = false
  #isHistoryFailing = false
  #passedMs = 0

  constructor() {
    // The thread that exists, of somebody else.
    this.#posts.set(THREAD, this.#post({ id: THREAD, user_id: ADA.id, channel_id: GROUP, message: 'the root' }))
  }

  get config() {
    return { token: TOKEN, base_url: this.origin }
  }
  get wrongConfig() {
    return { ...this.config, token: 'wrongmattermosttoken' }
  }
  get sent() {
    return this.#shown.sent
  }
  waitForSent = (count: number) => this.#shown.waitForSent(count)
  fail = (fault: PlatformFault) => this.#shown.fail(fault)
  setWebhook = () => {}
  dropNextEvent(): void {
    this.#isDropping = true
  }
  passTime(ms: number): void {
    this.#passedMs += ms
  }
  failNextHistory(): void {
    this.#isHistoryFailing = true
  }
  limitUntil(reset: number): void {
    this.#reset = reset
    this.#shown.fail({ kind: 'rate_limit' })
  }
  async waitForListener(): Promise<void> {
    await this.#listener.wait()
  }
  async disconnect(): Promise<void> {
    const listener = this.#listener.value
    this.#listener.set(undefined)
    listener?.peer.cut()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const known = this.#posts.get(input.redeliveryOf ?? '')
    if (known) {
      this.#emit('posted', this.#postedData(known, input))
      return known.id
    }
    const post = this.#postOf(input)
    this.#posts.set(post.id, post)
    this.#emit(input.editOf === undefined ? 'posted' : 'post_edited', this.#postedData(post, input))
    return post.id
  }

  #postOf(input: PlatformInput): Post {
    const isGroup = input.isGroup === true || input.threadId !== undefined
    const earlier = this.#posts.get(input.editOf ?? '')
    const text = input.mentionsBot ? `@${BOT.username} ${input.text}` : input.text
    if (earlier) return { ...earlier, message: text, edit_at: Date.now(), update_at: Date.now() }
    return this.#post({
      id: this.#id(),
      user_id: input.isOwn ? BOT.id : ADA.id,
      channel_id: isGroup ? GROUP : DIRECT,
      message: text,
      root_id: input.threadId ?? '',
      ...(input.isOwn && { props: { from_bot: 'true' } }),
      ...(input.files && { metadata: { files: input.files.map((file) => this.#keep(file)) } }),
    })
  }

  #post(more: Partial<Post>): Post {
    const now = 1_763_640_000_000 + this.#passedMs + this.#next++
    return {
      id: '',
      create_at: now,
      update_at: now,
      edit_at: 0,
      delete_at: 0,
      user_id: '',
      channel_id: '',
      root_id: '',
      message: '',
      type: '',
      props: {},
      file_ids: [],
      metadata: {},
      ...more,
    }
  }

  #postedData(post: Post, { mentionsBot, editOf }: PlatformInput): object {
    // An edit comes with the post alone.
    if (editOf !== undefined) return { post: JSON.stringify(post) }
    return {
      channel_display_name: post.channel_id === GROUP ? 'General' : '',
      channel_name: 'general',
      channel_type: post.channel_id === GROUP ? 'O' : 'D',
      post: JSON.stringify(post),
      sender_name: post.user_id === BOT.id ? '@svc' : '@ada',
      team_id: post.channel_id === GROUP ? TEAM : '',
      ...(mentionsBot && { mentions: JSON.stringify([BOT.id]) }),
    }
  }

  #keep(file: PlatformFile) {
    const id = this.#id()
    this.#files.set(id, file)
    return { id, name: file.name, mime_type: file.mime, size: file.bytes.byteLength, extension: '' }
  }

  #id(): string {
    return `p${String(this.#next++).padStart(25, '0')}`
  }

  // The WebSocket

  accept(peer: Peer, url: string): PeerHandlers | number {
    if (url !== '/api/v4/websocket') return 4000
    return {
      frame: (raw) => {
        const { seq, action, data } = (raw ?? {}) as { seq?: number; action?: string; data?: { token?: string } }
        if (action === 'ping') return peer.send({ status: 'OK', seq_reply: seq, data: { text: 'pong' } })
        if (seq !== 1 || action !== 'authentication_challenge') {
          this.violations.push(`the frame ${JSON.stringify(raw)}`)
          return
        }
        if (data?.token !== TOKEN || this.revocation.refuses()) {
          const error = { id: 'api.web_socket_router.not_authenticated.app_error', message: 'not authenticated' }
          peer.send({ status: 'FAIL', seq_reply: seq, error })
          return
        }
        peer.send({ status: 'OK', seq_reply: seq })
        const listener = { peer, seq: 0 }
        this.#listener.set(listener)
        this.#emit('hello', { server_version: '11.0.0', connection_id: this.#id() })
      },
      closed: () => {
        if (this.#listener.value?.peer === peer) this.#listener.set(undefined)
      },
    }
  }

  #emit(event: string, data: object): void {
    const listener = this.#listener.value
    if (!listener) return
    const seq = listener.seq++
    if (this.#isDropping) {
      this.#isDropping = false
      return
    }
    listener.peer.send({ event, data, broadcast: { channel_id: '', user_id: '' }, seq })
  }

  // The API

  async handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const path = call.url.pathname.replace(/^\/api\/v4/, '')
    // The scheme is written in capitals by the server's own client.
    const isGiven = call.headers.authorization?.replace(/^BEARER /, 'Bearer ') === `Bearer ${TOKEN}`
    if (!isGiven || this.revocation.refuses())
      return problem(401, 'api.context.session_expired.app_error', 'Invalid or expired session, please login again.')
    const body = (call.json ?? {}) as Body
    const route = `${call.method} ${path}`
    if (route === 'POST /posts') return this.#create(body, response)
    if (route === 'POST /files') return this.#upload(call)
    if (route === 'POST /reactions') return this.#react(body)
    if (route === 'POST /users/me/typing') {
      this.typing.push(body.channel_id ?? '')
      return { status: 200, body: { status: 'OK' } }
    }
    if (call.method === 'GET') return this.#read(call, path)
    if (call.method === 'DELETE') return this.#delete(path)
    const [, id] = /^PUT \/posts\/(\w+)\/patch$/.exec(route) ?? []
    return id === undefined ? problem(404, 'api.context.404.app_error', 'no such path') : this.#patch(id, body)
  }

  #read(call: PlatformCall, path: string): PlatformAnswer {
    if (path === '/users/me') return { status: 200, body: BOT }
    if (path === `/users/${ADA.id}`) return { status: 200, body: ADA }
    if (path === '/users/me/channels') return { status: 200, body: this.#channels() }
    const [, channel] = /^\/channels\/(\w+)\/posts$/.exec(path) ?? []
    if (channel !== undefined) return this.#history(channel, call.url.searchParams)
    const file = this.#files.get(/^\/files\/(\w+)$/.exec(path)?.[1] ?? '')
    if (file) return { status: 200, body: file.bytes, headers: { 'content-type': file.mime } }
    return problem(404, 'api.context.404.app_error', 'no such path')
  }

  #channels() {
    const last = (channel: string): number =>
      Math.max(0, ...[...this.#posts.values()].flatMap((post) => (post.channel_id === channel ? [post.create_at] : [])))
    return [
      { id: DIRECT, type: 'D', display_name: '', last_post_at: last(DIRECT) },
      { id: GROUP, type: 'O', display_name: 'General', last_post_at: last(GROUP) },
    ]
  }

  #history(channel: string, query: URLSearchParams): PlatformAnswer {
    if (channel === GROUP && this.#isHistoryFailing) {
      this.#isHistoryFailing = false
      return problem(500, 'app.post.get_posts_since.app_error', 'Unable to get posts.')
    }
    const since = Number(query.get('since'))
    const perPage = Number(query.get('per_page') ?? PER_PAGE)
    const start = Number(query.get('page')) * perPage
    if (!Number.isInteger(since)) return problem(400, 'api.context.invalid_url_param.app_error', 'Invalid since')
    const all = [...this.#posts.values()].filter((post) => post.channel_id === channel)
    // Of those that changed since a time the server takes a thousand, in no order.
    const posts = since
      ? all.filter((post) => post.update_at > since).slice(-MAX_SINCE)
      : all.toReversed().slice(start, start + perPage)
    const order = posts.toSorted((one, other) => other.create_at - one.create_at).map(({ id }) => id)
    return { status: 200, body: { order, posts: Object.fromEntries(posts.map((post) => [post.id, post])) } }
  }

  #create(body: Body, response: ServerResponse): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault && fault.kind !== 'lost_answer')
      return answerFault(fault, response, {
        rate_limit: (seconds = this.#reset) => ({
          status: 429,
          body: { message: 'limit exceeded' },
          ...(seconds !== undefined && { headers: { 'x-ratelimit-reset': String(seconds) } }),
        }),
        server_error: problem(500, 'app.post.save.app_error', 'Unable to save the Post.'),
        permanent: problem(403, 'api.context.permissions.app_error', 'You do not have the appropriate permissions.'),
        auth: problem(401, 'api.context.session_expired.app_error', 'Invalid or expired session.'),
      })
    const wrong = this.#refuse(body)
    if (wrong) {
      this.violations.push(wrong)
      return problem(400, 'api.post.create_post.root_id.app_error', wrong)
    }
    const files = (body.file_ids ?? []).flatMap((id) => this.#files.get(id) ?? [])
    const shown = this.#shown.show({
      id: this.#id(),
      chatId: body.channel_id ?? '',
      threadId: body.root_id,
      text: body.message ?? '',
      files,
      buttons: [],
      key: body.pending_post_id,
    })
    const post = this.#post({
      id: shown.id,
      user_id: BOT.id,
      channel_id: shown.chatId,
      message: shown.text,
      props: { from_bot: 'true' },
    })
    // As the server does, the post is told to its author, too.
    if (!this.#posts.has(post.id)) this.#emit('posted', this.#postedData(post, { text: '' }))
    this.#posts.set(post.id, post)
    return fault ? resetConnection(response) : { status: 201, body: { ...post, pending_post_id: body.pending_post_id } }
  }

  #refuse(body: Body): string | undefined {
    if (body.channel_id !== DIRECT && body.channel_id !== GROUP) return 'a channel that is none'
    if ((body.message ?? '') === '' && (body.file_ids ?? []).length === 0) return 'an empty post'
    if ([...(body.message ?? '')].length > 16_383) return 'a post that is too long'
    const root = body.root_id === undefined ? undefined : this.#posts.get(body.root_id)
    if (body.root_id !== undefined && (!root || root.root_id !== '')) return 'a root that is not the first of a thread'
    if (root && root.channel_id !== body.channel_id) return 'a root in another channel'
    if ((body.file_ids ?? []).some((id) => !this.#files.has(id))) return 'a file that was not uploaded'
    return undefined
  }

  #delete(path: string): PlatformAnswer {
    return this.#shown.remove(/^\/posts\/(\w+)$/.exec(path)?.[1] ?? '')
      ? { status: 200, body: { status: 'OK' } }
      : problem(404, 'app.post.get.app_error', 'Unable to get the post.')
  }

  #patch(id: string, { message = '' }: Body): PlatformAnswer {
    if (!this.#shown.edit(id, message)) return problem(404, 'app.post.get.app_error', 'Unable to get the post.')
    return { status: 200, body: { id, message } }
  }

  async #upload(call: PlatformCall): Promise<PlatformAnswer> {
    const form = await call.form()
    const file = form.get('files')
    if (form.get('channel_id') === null || !(file instanceof File)) return problem(400, 'x', 'Unable to upload file.')
    const id = this.#id()
    this.#files.set(id, await fileOf(file))
    return { status: 201, body: { file_infos: [{ id, name: file.name }], client_ids: [] } }
  }

  #react({ post_id: messageId = '', user_id: user, emoji_name: name = '' }: Body): PlatformAnswer {
    const emoji = EMOJI[name]
    if (user !== BOT.id || emoji === undefined || !this.#posts.has(messageId)) {
      this.violations.push(`the reaction ${name}`)
      return problem(400, 'api.reaction.save_reaction.invalid.app_error', 'Reaction is not valid.')
    }
    this.reactions.push({ messageId, emoji })
    return { status: 201, body: { user_id: user, post_id: messageId, emoji_name: name } }
  }
}

function problem(status: number, id: string, message: string): PlatformAnswer {
  return { status, body: { id, message, detailed_error: '', request_id: 'r', status_code: status } }
}
