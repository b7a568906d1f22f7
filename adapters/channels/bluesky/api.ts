import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, RecentMap, trimSlashes } from 'svc/channels'
import type { ApiRequest, ChannelLink, OutboundAttachment, OutboundMessage, SentMessage } from 'svc/channels'
import type { BlueskyConfig } from './config.ts'
import { encodePost, partsOf, POSTS } from './encode.ts'
import type { Part, PictureBlob } from './encode.ts'
import { errorFinder } from './errors.ts'
import { recordKey } from './record-key.ts'
import { Session } from './session.ts'
import { Account, NotificationPage, Post, PostList, PostRef, ReplyRef, Upload } from './wire.ts'

const PAGE = 50
/** Answers whose next part is written below the last one. */
const MAX_ANSWERS = 1000

const UPLOAD_TIMEOUT_MS = 120_000

/** The requests of one account. */
export class BlueskyApi {
  readonly #link: ChannelLink<BlueskyConfig>
  readonly #tokens: Session['tokens']
  readonly #client: ApiClient
  readonly #files: ApiClient
  readonly #base: string
  /** What was posted last in answer to a post. */
  readonly #answers = new RecentMap<string, PostRef>(MAX_ANSWERS)

  constructor(link: ChannelLink<BlueskyConfig>) {
    this.#link = link
    this.#tokens = new Session(link).tokens
    this.#base = trimSlashes(link.config.base_url)
    this.#client = new ApiClient(link, {
      system: 'bluesky',
      findError: errorFinder(() => link.now()),
      secrets: [link.config.token],
      authenticate: async () => ({ authorization: `Bearer ${(await this.#tokens.current()).accessJwt}` }),
      refuseRedirects: true,
    })
    this.#files = new ApiClient(link, { system: 'bluesky' })
  }

  account = () => this.#query('com.atproto.server.getSession', {}, Account, 'the account')

  /** Mentions and replies, the newest first. */
  notifications = (cursor: string | undefined, limit = PAGE, signal?: AbortSignal) =>
    this.#query(
      'app.bsky.notification.listNotifications',
      { reasons: ['mention', 'reply'], limit: String(limit), ...(cursor !== undefined && { cursor }) },
      NotificationPage,
      'the list of notifications',
      signal && { signal },
    )

  async markSeen(seenAt: string): Promise<void> {
    const url = this.#url('app.bsky.notification.updateSeen')
    await this.#tokens.renewing(() => this.#client.open(url, { json: { seenAt } }))
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    const { did } = await this.#tokens.current()
    const context = contextOf(message)
    let reply = await this.#placeOf(message)
    const sent: SentMessage[] = []
    for (const [index, part] of partsOf(message.text, message.attachments).entries()) {
      const rkey = recordKey(index === 0 ? message.id : `${message.id} ${index}`)
      const { ref, wasSentBefore } = await this.#post(did, rkey, part, reply)
      sent.push({ id: ref.uri, ...(wasSentBefore && { wasSentBefore }) })
      if (context) this.#answers.set(context.parent.uri, ref)
      reply = { root: reply?.root ?? ref, parent: ref }
    }
    return sent[0] ?? { id: '' }
  }

  /** A picture of a post, as Bluesky shows it. It needs no credentials. */
  async readImage(reference: { readonly did: string; readonly cid: string }, signal: AbortSignal) {
    const url = `${trimSlashes(this.#link.config.image_url)}/${reference.did}/${reference.cid}@jpeg`
    return (await this.#files.open(url, { signal, headers: { accept: 'image/*' } })).chunks()
  }

  /** Posts only if there is no post with this key. */
  async #post(repo: string, rkey: string, { text, images }: Part, reply: ReplyRef | undefined) {
    const pictures: PictureBlob[] = []
    for (const file of images) pictures.push({ image: await this.#upload(file), alt: file.name })
    const createdAt = new Date(this.#link.now()).toISOString()
    const record = encodePost({ text, images: pictures, createdAt, reply })
    const json = { repo, collection: POSTS, rkey, swapRecord: null, record }
    try {
      const ref = await this.#call('com.atproto.repo.putRecord', { json }, PostRef, 'the post')
      return { ref, wasSentBefore: false }
    } catch (error) {
      return { ref: await this.#findPosted(error, repo, rkey), wasSentBefore: true }
    }
  }

  async #upload(file: OutboundAttachment) {
    const request = {
      method: 'POST',
      body: await file.bytes(),
      headers: { 'content-type': file.mime },
      timeoutMs: UPLOAD_TIMEOUT_MS,
    }
    return (await this.#call('com.atproto.repo.uploadBlob', request, Upload, 'the uploaded picture')).blob
  }

  /** What is below the post that is answered: an answer of several parts is one post below the other. */
  async #placeOf(message: OutboundMessage): Promise<ReplyRef | undefined> {
    const { to, replyTo } = message
    const context = contextOf(message)
    if (replyTo !== undefined && replyTo !== context?.parent.uri) return this.#find(replyTo)
    if (!context) return to.threadId === undefined ? undefined : this.#find(to.threadId)
    const last = replyTo === undefined ? this.#answers.get(context.parent.uri) : undefined
    return last ? { root: context.root, parent: last } : context
  }

  async #find(uri: string): Promise<ReplyRef> {
    const { posts } = await this.#query('app.bsky.feed.getPosts', { uris: [uri] }, PostList, 'a post')
    const [post] = posts
    if (!post)
      throw new UpstreamFailure('bluesky', 'The post that is answered is gone', { reason: 'not_found', retry: 'never' })
    const parent = { uri: post.uri, cid: post.cid }
    const record = v.safeParse(Post, post.record)
    return { root: (record.success ? record.output.reply?.root : undefined) ?? parent, parent }
  }

  /** An earlier attempt has made the record; otherwise the failure. */
  async #findPosted(error: unknown, repo: string, rkey: string): Promise<PostRef> {
    if (!(error instanceof UpstreamFailure) || error.reason !== 'invalid_request') throw error
    try {
      return await this.#query('com.atproto.repo.getRecord', { repo, collection: POSTS, rkey }, PostRef, 'the post')
    } catch (missing) {
      throw missing instanceof UpstreamFailure && missing.retry === 'later' ? missing : error
    }
  }

  #query<S extends v.GenericSchema>(
    method: string,
    parameters: Readonly<Record<string, string | readonly string[]>>,
    schema: S,
    what: string,
    request: ApiRequest = {},
  ): Promise<v.InferOutput<S>> {
    const query = new URLSearchParams(
      Object.entries(parameters).flatMap(([name, values]) =>
        (typeof values === 'string' ? [values] : values).map((value) => [name, value]),
      ),
    )
    return this.#call(query.size === 0 ? method : `${method}?${query}`, request, schema, what)
  }

  #call<S extends v.GenericSchema>(
    method: string,
    request: ApiRequest,
    schema: S,
    what: string,
  ): Promise<v.InferOutput<S>> {
    return this.#tokens.renewing(() => this.#client.json(this.#url(method), request, schema, what))
  }

  #url(method: string): string {
    return `${this.#base}/xrpc/${method}`
  }
}

function contextOf({ to }: OutboundMessage): ReplyRef | undefined {
  const parsed = v.safeParse(ReplyRef, to.replyContext)
  return parsed.success ? parsed.output : undefined
}
