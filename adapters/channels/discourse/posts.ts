import * as v from 'valibot'
import { SerialQueue, UpstreamFailure } from 'svc/sdk'
import { pause, pollInBackground, RecentMap } from 'svc/channels'
import type { Background, ChannelLink } from 'svc/channels'
import type { DiscourseApi, Feed } from './api.ts'
import type { DiscourseConfig } from './config.ts'
import { decodePost, mayWrite } from './decode.ts'
import { Post } from './wire.ts'
import type { Bot, Topic } from './wire.ts'

const FEEDS: readonly Feed[] = ['public', 'private']
/** Pages of 50 posts. What is older was written while the daemon was away for very long, and is left out. */
const MAX_PAGES = 20
/** Posts can become visible in another order than their ids say: what was read already is left out. */
const OVERLAP = 20
const MAX_SEEN = 2000
const MAX_TOPICS = 1000
const STATE = 'posts'

/** Passes on posts: those of the two feeds, and those that the webhook names. */
export class DiscoursePosts {
  readonly #link: ChannelLink<DiscourseConfig>
  readonly #api: DiscourseApi
  readonly #bot: Bot
  /** Versions of the posts that were dealt with. */
  readonly #seen = new RecentMap<number, number>(MAX_SEEN)
  readonly #topics = new RecentMap<number, Topic>(MAX_TOPICS)
  readonly #queue = new SerialQueue()
  readonly #last: Record<Feed, number> = { public: 0, private: 0 }
  /** What has no higher id is history. */
  #start = 0

  constructor(link: ChannelLink<DiscourseConfig>, api: DiscourseApi, bot: Bot) {
    this.#link = link
    this.#api = api
    this.#bot = bot
  }

  /** Reads what was missed; then looks for posts until the connection ends. */
  async open(): Promise<Background> {
    await this.#load()
    await this.#poll()
    const waitMs = this.#link.config.poll_secs * 1000
    return pollInBackground(this.#link, async (signal) => {
      if (await pause(this.#link, waitMs, signal)) await this.#queue.run(() => this.#poll())
    })
  }

  /** The webhook names a post. Settles when it is durable. */
  async look(id: number, isChange: boolean): Promise<void> {
    await this.#queue.run(async () => {
      const post = await unlessRefused(this.#api.post(id))
      if (!post || post.id <= this.#start) return
      const topic = await this.#topicOf(post)
      const isKnown = post.id <= Math.max(this.#last.public, this.#last.private)
      if (topic) await this.#receive(post, topic, isChange && isKnown)
    })
  }

  async #load(): Promise<void> {
    const saved = await this.#link.state.read(STATE)
    if (saved !== undefined) {
      const [last = 0, lastPrivate = 0, start = 0] = saved.split(' ').map(Number)
      Object.assign(this.#last, { public: last, private: lastPrivate })
      this.#start = start
      return
    }
    const newest = await Promise.all(FEEDS.map((feed) => this.#api.latest(feed)))
    this.#start = Math.max(0, ...newest.flat().map(idOf))
    Object.assign(this.#last, { public: this.#start, private: this.#start })
    await this.#save()
  }

  async #save(): Promise<void> {
    await this.#link.state.write(STATE, `${this.#last.public} ${this.#last.private} ${this.#start}`)
  }

  async #poll(): Promise<void> {
    const before = FEEDS.map((feed) => this.#last[feed])
    for (const feed of FEEDS) await this.#read(feed)
    if (FEEDS.some((feed, index) => this.#last[feed] !== before[index])) await this.#save()
  }

  async #read(feed: Feed): Promise<void> {
    const from = Math.max(this.#start, this.#last[feed] - OVERLAP)
    for (const raw of (await this.#newer(feed, from)).toReversed()) {
      const post = v.safeParse(Post, raw)
      if (post.success) await this.#receiveListed(feed, post.output)
      else if (!this.#seen.has(idOf(raw))) {
        // It is listed again at the next looks.
        this.#seen.set(idOf(raw), Infinity)
        this.#link.log.warn('Discourse listed a post in a form that cannot be read')
      }
      this.#last[feed] = Math.max(this.#last[feed], idOf(raw))
    }
  }

  /** Posts with higher ids, the newest first. */
  async #newer(feed: Feed, from: number): Promise<readonly unknown[]> {
    const found: unknown[] = []
    let before: number | undefined
    for (let page = 0; page < MAX_PAGES; page++) {
      const listed = await this.#api.latest(feed, before)
      found.push(...listed.filter((raw) => idOf(raw) > from))
      const oldest = Math.min(...listed.map(idOf))
      if (listed.length === 0 || oldest <= from || oldest === before) return found
      before = oldest
    }
    this.#link.log.warn('There were too many posts on Discourse meanwhile: the oldest of them are left out')
    return found
  }

  async #receiveListed(feed: Feed, post: Post): Promise<void> {
    if (this.#isSeen(post)) return
    const topic = feed === 'public' ? { archetype: 'regular' } : await this.#topicOf(post)
    if (topic) await this.#receive(post, topic)
  }

  async #receive(post: Post, topic: Topic, isChange = false): Promise<void> {
    if (this.#isSeen(post)) return
    const isEdit = isChange || this.#seen.has(post.id)
    const message = this.#isRead(post, topic) ? decodePost(post, { bot: this.#bot, topic, isEdit }) : undefined
    if (message) await this.#link.receive(message)
    this.#seen.set(post.id, post.version)
  }

  #isSeen({ id, version }: Post): boolean {
    return (this.#seen.get(id) ?? -1) >= version
  }

  #isRead(post: Post, topic: Topic): boolean {
    const { categories } = this.#link.config
    const category = post.category_id ?? topic.category_id
    return categories.length === 0 || category == null || categories.includes(String(category))
  }

  /** A topic of personal messages is read again when somebody writes who was not in it. */
  async #topicOf({ topic_id: id, username }: Post): Promise<Topic | undefined> {
    const known = this.#topics.get(id)
    if (known && mayWrite(known, username)) return known
    const topic = await unlessRefused(this.#api.topic(id))
    if (topic) this.#topics.set(id, topic)
    return topic
  }
}

const Numbered = v.object({ id: v.pipe(v.number(), v.safeInteger(), v.minValue(0)) })
const idOf = (raw: unknown): number => (v.is(Numbered, raw) ? raw.id : 0)

/** `undefined` for what is gone, or closed to the bot. */
async function unlessRefused<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof UpstreamFailure) || error.retry === 'later' || error.reason === 'auth') throw error
    return undefined
  }
}
