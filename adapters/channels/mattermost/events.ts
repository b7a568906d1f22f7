import * as v from 'valibot'
import { readJson, UpstreamFailure } from 'svc/sdk'
import { RecentMap, SavedPosition } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'
import { POSTS_PER_PAGE } from './api.ts'
import type { MattermostApi } from './api.ts'
import type { MattermostConfig } from './config.ts'
import { decodePost } from './decode.ts'
import { Ids, Post, Posted } from './wire.ts'
import type { Channel, User } from './wire.ts'

const MAX_USERS = 2000
const MAX_OWN_POSTS = 2000
/** Of more posts since a time than that the server answers with some, whichever they are. */
const MAX_SINCE = 1000
/** What is older than these pages was written while the daemon was away for very long, and is left out. */
const MAX_PAGES = 50
/** Posts can become visible in another order than their times say: what was read already is dropped as a duplicate. */
const OVERLAP_MS = 10_000

/** Passes on posts: those of the WebSocket, and those that were written while it was not open. */
export class MattermostEvents {
  readonly #link: ChannelLink<MattermostConfig>
  readonly #api: MattermostApi
  readonly #bot: User
  readonly #position: SavedPosition
  readonly #handles = new RecentMap<string, string>(MAX_USERS)
  /** Threads the bot began: an answer in one is an answer to the bot. */
  readonly #ownPosts = new RecentMap<string, true>(MAX_OWN_POSTS)
  #since = 0
  /** What was written up to this time is history. */
  #start = 0

  constructor(link: ChannelLink<MattermostConfig>, api: MattermostApi, bot: User) {
    this.#link = link
    this.#api = api
    this.#bot = bot
    this.#position = new SavedPosition(link, 'since')
  }

  noteOwnPost(id: string): void {
    this.#ownPosts.set(id, true)
  }

  /** A post of the WebSocket. Settles when it is durable. */
  async posted(data: unknown, isEdit: boolean): Promise<void> {
    const event = v.safeParse(Posted, data)
    const post = event.success ? v.safeParse(Post, readInner(event.output.post)) : undefined
    if (!event.success || !post?.success) {
      this.#link.log.warn('Mattermost sent a post in a form that cannot be read')
      return
    }
    const { channel_type: channelType, channel_display_name: channelName, sender_name: senderName } = event.output
    const { create_at: at } = post.output
    await this.#receive(post.output, isEdit, {
      // An edit does not tell where it is.
      channelType: channelType ?? (isEdit ? await this.#typeOf(post.output.channel_id) : undefined),
      channelName: channelName ?? undefined,
      teamId: event.output.team_id ?? undefined,
      senderName: senderName ?? undefined,
      mentionedIds: readIds(event.output.mentions),
    })
    if (!isEdit) this.#advance(at)
  }

  /** Reads what was written since the last post that was dealt with. The first time there is nothing to read. */
  async catchUp(): Promise<void> {
    const channels = await this.#api.channels()
    const saved = await this.#position.read()
    if (saved === undefined) {
      this.#start = this.#since = Math.max(0, ...channels.map(({ last_post_at: at }) => at ?? 0))
      await this.#position.write(this.#saved())
      return
    }
    const [since = 0, start = 0] = saved.split(' ').map(Number)
    this.#since = Math.max(this.#since, since)
    this.#start = start
    const from = Math.max(this.#since - OVERLAP_MS, start)
    let last = this.#since
    for (const channel of channels)
      if ((channel.last_post_at ?? 0) > from) last = Math.max(last, await this.#readChannel(channel, from))
    // Not before, as another channel may have older posts.
    this.#advance(last)
  }

  async flush(): Promise<void> {
    await this.#position.flush()
  }

  /** Returns the time of the newest post. */
  async #readChannel(channel: Channel, since: number): Promise<number> {
    const written = (await this.#writtenIn(channel.id, since))
      .flatMap((raw) => {
        const post = v.safeParse(Post, raw)
        return post.success && post.output.create_at > since ? [post.output] : []
      })
      .sort((one, other) => one.create_at - other.create_at)
    for (const post of written)
      await this.#receive(post, false, {
        channelType: channel.type,
        channelName: channel.display_name ?? undefined,
        teamId: channel.team_id ?? undefined,
      })
    return written.at(-1)?.create_at ?? since
  }

  async #writtenIn(channel: string, since: number): Promise<readonly unknown[]> {
    const { order, posts } = await this.#api.postsSince(channel, since)
    if (order.length < MAX_SINCE) return Object.values(posts)
    const found: Record<string, unknown> = {}
    for (let page = 0; page < MAX_PAGES; page++) {
      const listed = await this.#api.posts(channel, page)
      Object.assign(found, listed.posts)
      const oldest = v.safeParse(Post, listed.posts[listed.order.at(-1) ?? ''])
      if (listed.order.length < POSTS_PER_PAGE || (oldest.success && oldest.output.create_at <= since))
        return Object.values(found)
    }
    this.#link.log.warn('There were too many posts on Mattermost meanwhile: the oldest of a channel are left out', {
      channel,
    })
    return Object.values(found)
  }

  async #receive(post: Post, isEdit: boolean, facts: PostFacts): Promise<void> {
    const context = {
      ...facts,
      bot: this.#bot,
      ignoreBots: this.#link.config.ignore_bots,
      isInOwnThread: post.root_id ? this.#ownPosts.has(post.root_id) : false,
    }
    if (decodePost(post, context, isEdit)) {
      const senderName = facts.senderName ?? (await this.#handleOf(post.user_id))
      const message = decodePost(post, { ...context, senderName }, isEdit)
      if (message) await this.#link.receive(message)
    }
  }

  #advance(time: number): void {
    if (time <= this.#since) return
    this.#since = time
    this.#position.set(this.#saved())
  }

  #saved(): string {
    return `${this.#since} ${this.#start}`
  }

  async #handleOf(id: string): Promise<string | undefined> {
    const known = this.#handles.get(id)
    if (known !== undefined) return known
    try {
      const handle = `@${(await this.#api.user(id)).username}`
      this.#handles.set(id, handle)
      return handle
    } catch (error) {
      // Allow-lists may name the handle: a sender without one could be refused for good.
      if (!(error instanceof UpstreamFailure) || error.retry === 'later') throw error
      return undefined
    }
  }

  async #typeOf(channel: string): Promise<string | undefined> {
    return (await this.#api.channels()).find(({ id }) => id === channel)?.type
  }
}

interface PostFacts {
  readonly channelType?: string | undefined
  readonly channelName?: string | undefined
  readonly teamId?: string | undefined
  readonly senderName?: string | undefined
  readonly mentionedIds?: readonly string[] | undefined
}

function readIds(text: string | null | undefined): readonly string[] {
  if (text == null) return []
  const ids = v.safeParse(Ids, readInner(text))
  return ids.success ? ids.output : []
}

/** JSON in a text; `undefined` for what is none, which is no post. */
function readInner(text: string): unknown {
  try {
    return readJson(text)
  } catch {
    return undefined
  }
}
