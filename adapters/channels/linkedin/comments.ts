import * as v from 'valibot'
import { pause, pollInBackground, RecentMap, SavedPosition } from 'svc/channels'
import type { Background, ChannelLink, InboundMessage } from 'svc/channels'
import { PAGE } from './api.ts'
import type { LinkedInApi } from './api.ts'
import { wholeUrn } from './comment-urn.ts'
import type { LinkedInConfig } from './config.ts'
import { decodeComment } from './decode.ts'
import { Comment, Notification } from './wire.ts'

/** What is told late is found all the same; what was read already is known by its URN. */
const OVERLAP_MS = 3_600_000
const MAX_SEEN = 5000

/** Reads the comments on posts of the organization, again and again. */
export class Comments {
  readonly #link: ChannelLink<LinkedInConfig>
  readonly #api: LinkedInApi
  readonly #position: SavedPosition
  readonly #seen = new RecentMap<string, true>(MAX_SEEN)
  /** The time up to which comments were read, and that of the first start, in milliseconds. */
  #last = 0
  #start = 0
  /** What was left out the last time that something was. */
  #warning: string | undefined

  constructor(link: ChannelLink<LinkedInConfig>, api: LinkedInApi) {
    this.#link = link
    this.#api = api
    this.#position = new SavedPosition(link, 'last')
  }

  /** Settles when what was missed is durable. Throws `UpstreamFailure`. */
  async open(): Promise<Background> {
    const [last, start] = (await this.#position.read())?.split(' ').map(Number) ?? []
    this.#last = last ?? this.#link.now()
    this.#start = start ?? this.#last
    if (last === undefined) await this.#position.write(`${this.#last} ${this.#start}`)
    else await this.#read(this.#link.signal)
    const pauseMs = this.#link.config.poll_seconds * 1000
    return pollInBackground(this.#link, async (signal) => {
      if (await pause(this.#link, pauseMs, signal)) await this.#read(signal)
    })
  }

  async #read(signal: AbortSignal): Promise<void> {
    const until = this.#link.now()
    for (const { generatedActivity: urn } of await this.#list(until, signal)) {
      if (this.#seen.has(urn)) continue
      const message = this.#decode(urn, await this.#api.comment(urn, signal))
      if (message) await this.#link.receive(message)
      this.#seen.set(urn, true)
    }
    this.#last = until
    await this.#position.write(`${this.#last} ${this.#start}`)
  }

  /** One that cannot be read, such as a picture without a text, must not hold up the others. */
  #decode(urn: string, raw: unknown): InboundMessage | undefined {
    const comment = v.safeParse(Comment, raw)
    if (comment.success) {
      const whole = wholeUrn(comment.output.commentUrn ?? urn)
      return decodeComment(comment.output, { urn: whole, organization: this.#api.urn })
    }
    this.#link.log.warn('LinkedIn did not show a comment in a form that can be read: it is left out', { urn })
    return undefined
  }

  /** Oldest first. */
  async #list(until: number, signal: AbortSignal): Promise<readonly Notification[]> {
    const from = Math.max(this.#start, this.#last - OVERLAP_MS)
    const limit = this.#link.config.catch_up_messages
    const found: Notification[] = []
    // One more than are read tells whether some are left out.
    for (let page = 0; found.length <= limit; page++) {
      const elements = await this.#api.notifications(from, until, page * PAGE, signal)
      found.push(...elements.flatMap((raw) => this.#parse(raw)))
      if (elements.length < PAGE) break
    }
    if (found.length > limit) this.#warn(limit, found.length - limit)
    return found.slice(0, limit).toSorted((one, other) => one.lastModifiedAt - other.lastModifiedAt)
  }

  get warnings(): readonly string[] {
    return this.#warning === undefined ? [] : [this.#warning]
  }
  #warn(limit: number, more: number): void {
    this.#warning =
      `Of the comments that came meanwhile, ${limit} were read, and ${more} or more were not: catch_up_messages of the ` +
      'account is the limit'
    this.#link.log.warn(`LinkedIn: ${this.#warning}`)
  }

  #parse(raw: unknown): readonly Notification[] {
    const parsed = v.safeParse(Notification, raw)
    if (!parsed.success || parsed.output.action !== 'COMMENT') return []
    return parsed.output.organizationalEntity === this.#api.urn ? [parsed.output] : []
  }
}
