import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, ignoreMissing, PartialSends, RecentMap, trimSlashes } from 'svc/channels'
import type { ApiRequest, ChannelLink, OutboundAttachment, OutboundMessage, SentMessage } from 'svc/channels'
import type { DiscourseConfig } from './config.ts'
import { encodeFile, encodeText } from './encode.ts'
import { findError, findIdentityError, isNoAccess, isRefusedPost } from './errors.ts'
import { numberOf, postId, topicOf } from './place.ts'
import { Edited, LatestPosts, Post, PostId, PrivatePosts, Sent, Topic, Upload, User } from './wire.ts'
import type { Bot } from './wire.ts'

export const MAX_CHARACTERS = 32_000
const UPLOAD_TIMEOUT_MS = 120_000
const MAX_OWN = 1000
export type Feed = 'public' | 'private'

/** The requests of one user of the forum. */
export class DiscourseApi {
  readonly #config: DiscourseConfig
  readonly #client: ApiClient
  readonly #identity: ApiClient
  readonly #files: ApiClient
  readonly #base: string
  readonly #partial = new PartialSends()
  /** Ids of the posts of the bot, by their names. */
  readonly #own = new RecentMap<string, number>(MAX_OWN)

  constructor(link: ChannelLink<DiscourseConfig>) {
    const { base_url: base, token, api_username: username, webhook_secret: hook = '' } = link.config
    this.#config = link.config
    this.#base = trimSlashes(base)
    const common = {
      system: 'discourse',
      secrets: [token, hook],
      authenticate: () => ({ 'api-key': token, 'api-username': username }),
      refuseRedirects: true,
    }
    this.#client = new ApiClient(link, { ...common, findError })
    this.#identity = new ApiClient(link, { ...common, findError: findIdentityError })
    // Files may be in another store, which must not get the key.
    this.#files = new ApiClient(link, { system: 'discourse' })
  }

  async me(): Promise<Bot> {
    const url = `${this.#base}/u/${encodeURIComponent(this.#config.api_username)}.json`
    const { user } = await this.#identity.json(url, {}, User, 'the account of the bot')
    return { id: user.id, username: user.username, groups: user.groups.map(({ name }) => name) }
  }

  /** The newest 50 posts of a feed that are older than one of them. */
  async latest(feed: Feed, before?: number): Promise<readonly unknown[]> {
    const query = before === undefined ? '' : `?before=${before}`
    if (feed === 'public') return (await this.#get(`/posts.json${query}`, LatestPosts, 'the newest posts')).latest_posts
    return (await this.#get(`/private-posts.json${query}`, PrivatePosts, 'the newest messages')).private_posts
  }

  post = (id: number) => this.#get(`/posts/${id}.json`, Post, 'a post')

  topic = (id: number) => this.#get(`/t/${id}.json`, Topic, 'a topic')

  async send(message: OutboundMessage): Promise<SentMessage> {
    const topic = topicOf(message.to)
    const links: string[] = []
    for (const file of message.attachments) links.push(await this.#upload(file))
    const { min_length: minLength } = this.#config
    const text = encodeText(message.text, message.text === '' || links.length > 0 ? 0 : minLength)
    const whole = [text, ...links].filter((part) => part !== '').join('\n\n')
    const raws = [...whole].length <= MAX_CHARACTERS ? [whole] : [text, links.join('\n\n')]
    const number = message.replyTo === undefined ? undefined : numberOf(message.replyTo)
    return this.#partial.send(
      message.id,
      raws.map((raw) => () => this.#post(topic, raw, number)),
    )
  }

  async edit({ id }: SentMessage, { text }: OutboundMessage): Promise<void> {
    const json = { post: { raw: encodeText(text, this.#config.min_length) } }
    const request = { method: 'PUT', json }
    const url = `/posts/${await this.#idOf(id)}.json`
    await this.#known(() => this.#client.json(this.#base + url, request, Edited, 'the edited post'))
  }

  async delete({ id }: SentMessage): Promise<void> {
    await ignoreMissing(this.#delete(id))
  }

  /** The forum leads to the store of its files. */
  async readFile(file: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const url = `${this.#base}/uploads/short-url/${encodeURIComponent(file)}?dl=1`
    return (await this.#files.open(url, { signal, headers: { accept: '*/*' } })).chunks()
  }

  async #post(topic: number, raw: string, replyTo: number | undefined): Promise<SentMessage> {
    // The forum answers the same request with the same post for two minutes.
    const json = { topic_id: topic, raw, ...(replyTo !== undefined && { reply_to_post_number: replyTo }) }
    try {
      const sent = await this.#known(() =>
        this.#client.json(`${this.#base}/posts.json`, { json }, Sent, 'the new post'),
      )
      return 'id' in sent ? this.#noted(sent) : { id: '' }
    } catch (error) {
      // After that it refuses a post that it has.
      const earlier = isRefusedPost(error) ? await this.#find(topic, raw) : undefined
      if (!earlier) throw error
      return { ...this.#noted(earlier), wasSentBefore: true }
    }
  }

  #noted({ id, topic_id: topic, post_number: number }: Pick<Post, 'id' | 'topic_id' | 'post_number'>): SentMessage {
    const name = postId(topic, number)
    this.#own.set(name, id)
    return { id: name }
  }

  /** The same post of the bot among the newest ones. */
  async #find(topic: number, raw: string): Promise<Post | undefined> {
    const username = this.#config.api_username.toLowerCase()
    const listed = [...(await this.latest('public')), ...(await this.latest('private'))]
    return listed
      .flatMap((each) => (v.is(Post, each) ? [v.parse(Post, each)] : []))
      .find((post) => {
        const isOwn = post.username.toLowerCase() === username
        return isOwn && post.topic_id === topic && post.raw.trim() === raw.trim()
      })
  }

  async #upload(file: OutboundAttachment): Promise<string> {
    const form = new FormData()
    form.set('type', 'composer')
    form.set('synchronous', 'true')
    form.set('file', new Blob([new Uint8Array(await file.bytes())], { type: file.mime }), file.name)
    const request = { form, timeoutMs: UPLOAD_TIMEOUT_MS }
    const upload = await this.#known(() =>
      this.#client.json(`${this.#base}/uploads.json`, request, Upload, 'the uploaded file'),
    )
    return encodeFile(file, upload.short_url)
  }

  async #delete(name: string): Promise<void> {
    const id = await this.#idOf(name)
    await this.#known(() => this.#client.open(`${this.#base}/posts/${id}.json`, { method: 'DELETE' }))
  }

  async #idOf(name: string): Promise<number> {
    const known = this.#own.get(name)
    if (known !== undefined) return known
    if (numberOf(name) === undefined)
      throw new UpstreamFailure('discourse', `${name} is no post`, { reason: 'not_found', retry: 'never' })
    const { id } = await this.#get(`/posts/by_number/${name}.json`, PostId, 'a post')
    this.#own.set(name, id)
    return id
  }

  #get<S extends v.GenericSchema>(path: string, schema: S, what: string): Promise<v.InferOutput<S>> {
    const request: ApiRequest = {}
    return this.#known(() => this.#client.json(this.#base + path, request, schema, what))
  }

  /** The forum refuses a wrong key in the words of a closed topic: who the bot is tells them apart. */
  async #known<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (isNoAccess(error)) await this.me()
      throw error
    }
  }
}
