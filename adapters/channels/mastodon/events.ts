import * as v from 'valibot'
import { SerialQueue, UpstreamFailure } from 'svc/sdk'
import { RecentMap, SavedPosition } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'
import type { MastodonApi } from './api.ts'
import type { MastodonConfig } from './config.ts'
import { decodeStatus, isDirect } from './decode.ts'
import { Mention } from './wire.ts'
import type { Account, Instance, Status } from './wire.ts'

const MAX_THREADS = 5000
/** Pages of 40 mentions. What is older was written while the daemon was away for very long, and is left out. */
const MAX_PAGES = 50
/** Before every id. */
const START = '0'

/** Reads the list of mentions and passes them on, in order. */
export class MastodonEvents {
  readonly #link: ChannelLink<MastodonConfig>
  readonly #api: MastodonApi
  readonly #bot: Account
  readonly #domain: string
  readonly #position: SavedPosition
  readonly #reads = new SerialQueue()
  /** The first post of the thread of a post. */
  readonly #roots = new RecentMap<string, string>(MAX_THREADS)
  #last: string | undefined
  #waiting: Promise<void> | undefined

  constructor(link: ChannelLink<MastodonConfig>, api: MastodonApi, bot: Account, { domain }: Instance) {
    this.#link = link
    this.#api = api
    this.#bot = bot
    this.#domain = domain ?? ''
    this.#position = new SavedPosition(link, 'last')
  }

  noteOwnPost(id: string, threadId: string | undefined): void {
    this.#roots.set(id, threadId ?? id)
  }

  /** Passes on what was written since the last mention. A read that waits for its turn serves all who ask meanwhile. */
  read(): Promise<void> {
    this.#waiting ??= this.#reads.run(async () => {
      this.#waiting = undefined
      await this.#read()
    })
    return this.#waiting
  }

  async flush(): Promise<void> {
    await this.#position.flush()
  }

  async #read(): Promise<void> {
    this.#last ??= await this.#position.read()
    if (this.#last === undefined) {
      // The first time there is nothing to read.
      const [newest] = await this.#api.mentions(undefined)
      this.#last = newest?.id ?? START
      return this.#position.write(this.#last)
    }
    for (let page = 0; page < MAX_PAGES; page++) {
      const mentions = await this.#api.mentions(this.#last)
      if (mentions.length === 0) return
      for (const raw of mentions.toReversed()) {
        await this.#receive(raw)
        this.#last = raw.id
        this.#position.set(raw.id)
      }
    }
    this.#link.log.warn('There were too many mentions on Mastodon meanwhile: the next ones are read later')
  }

  async #receive(raw: unknown): Promise<void> {
    const mention = v.safeParse(Mention, raw)
    if (!mention.success) return this.#link.log.warn('Mastodon sent a mention in a form that cannot be read')
    const { status } = mention.output
    const context = { bot: this.#bot, domain: this.#domain, ignoreBots: this.#link.config.ignore_bots }
    if (!decodeStatus(status, { ...context, root: status.id })) return
    const root = await this.#rootOf(status)
    const message = decodeStatus(status, { ...context, root })
    if (message) await this.#link.receive(message)
  }

  async #rootOf(status: Status): Promise<string> {
    const { id, in_reply_to_id: parent } = status
    if (isDirect(status)) return id
    const root = parent == null ? id : (this.#roots.get(parent) ?? (await this.#findRoot(id)) ?? parent)
    this.#roots.set(id, root)
    return root
  }

  /** `undefined` when the thread cannot be seen. */
  async #findRoot(id: string): Promise<string | undefined> {
    try {
      return (await this.#api.context(id)).ancestors[0]?.id
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || error.reason !== 'not_found') throw error
      return undefined
    }
  }
}
