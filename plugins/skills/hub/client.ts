import * as v from 'valibot'
import { monotonicClock } from 'svc/internal'
import { readFailedBody, readFailedJson, readRetryAfter, Refusal, shortened, UpstreamFailure } from 'svc/sdk'
import type { Fetch, OutboundResponse } from 'svc/sdk'
import { hubFailed } from './errors.ts'

/** Bytes of an answer that is no archive. */
const MAX_ANSWER_BYTES = 4_194_304
/** Answers that are kept, and characters of them together; the oldest goes first. */
const MAX_KEPT = 200
const MAX_KEPT_CHARS = 16_777_216
/** A longer pause than this is not believed. */
const MAX_PAUSE_SECS = 3600
/** Pause when a hub that limits us names none. */
const DEFAULT_PAUSE_SECS = 60

export interface HubClientDeps {
  readonly fetch: Fetch
  /** As people know it, for messages. */
  readonly name: string
  /** Without a slash at its end. */
  readonly base: string
  readonly cacheSecs: number
  readonly headers?: Readonly<Record<string, string>>
  /** Milliseconds. */
  readonly now?: () => number
}
type Query = Readonly<Record<string, string | undefined>>
interface Kept {
  readonly until: number
  readonly answer: Promise<string>
  /** 0 until it has come. */
  chars: number
}

/** Asks a hub. What it answered is kept for a while, and while it limits us it is not asked. */
export class HubClient {
  readonly #deps: HubClientDeps
  readonly #now: () => number
  readonly #kept = new Map<string, Kept>()
  #pausedUntil = 0
  constructor(deps: HubClientDeps) {
    this.#deps = deps
    this.#now = deps.now ?? (() => monotonicClock.now())
  }

  /**
   * The checked answer. Throws `not_found`, `conflict` and `forbidden` as the hub says them, `rate_limit` with the
   * seconds to wait, and `hub_failed` when it cannot be reached or understood.
   */
  async json<S extends v.GenericSchema>(path: string, query: Query, schema: S): Promise<v.InferOutput<S>> {
    const text = await this.text(path, query)
    const result = v.safeParse(schema, readFailedJson(text))
    if (result.success) return result.output
    this.#kept.delete(this.#url(path, query).href)
    throw new Refusal(hubFailed, `${this.#deps.name} answered ${path} with something that is not understood`)
  }

  async text(path: string, query: Query): Promise<string> {
    const url = this.#url(path, query)
    const known = this.#kept.get(url.href)
    if (known && known.until > this.#now()) return await known.answer
    const answer = this.#send(url, MAX_ANSWER_BYTES).then((response) => this.#read(() => response.text()))
    this.#keep(url.href, answer)
    return await answer
  }

  /** Not kept. `type` is that of its content. */
  async bytes(path: string, query: Query, maxBytes: number): Promise<{ readonly bytes: Uint8Array; type: string }> {
    const response = await this.#send(this.#url(path, query), maxBytes)
    return { bytes: await this.#read(() => response.bytes()), type: response.header('content-type') ?? '' }
  }

  #keep(key: string, answer: Promise<string>): void {
    const kept: Kept = { until: this.#now() + this.#deps.cacheSecs * 1000, answer, chars: 0 }
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    answer.then(
      ({ length }) => {
        kept.chars = length
        this.#trim()
      },
      () => {
        if (this.#kept.get(key) === kept) this.#kept.delete(key)
      },
    )
    this.#trim()
  }
  #trim(): void {
    let chars = 0
    for (const kept of this.#kept.values()) chars += kept.chars
    for (const [key, kept] of this.#kept) {
      if (this.#kept.size <= MAX_KEPT && chars <= MAX_KEPT_CHARS) break
      this.#kept.delete(key)
      chars -= kept.chars
    }
  }

  #url(path: string, query: Query): URL {
    const url = new URL(`${this.#deps.base}${path}`)
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value)
    return url
  }

  async #send(url: URL, maxBytes: number): Promise<OutboundResponse> {
    const pause = (this.#pausedUntil - this.#now()) / 1000
    if (pause > 0) throw this.#limited(pause)
    const { fetch, headers = {} } = this.#deps
    const isSecure = url.protocol === 'https:'
    const response = await this.#read(() =>
      fetch(url, {
        headers,
        maxBytes,
        check(each) {
          if (isSecure && each.protocol !== 'https:')
            throw new Refusal('forbidden', `${url.host} leads to an address without https`)
        },
      }),
    )
    if (response.ok) return response
    throw await this.#refusal(response)
  }

  /** What the network does becomes `hub_failed`. */
  async #read<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error
      throw new Refusal(hubFailed, `${this.#deps.name} cannot be used: ${error.message}`, { cause: error })
    }
  }

  async #refusal(response: OutboundResponse): Promise<Refusal> {
    const { status } = response
    const { name } = this.#deps
    // GitHub says its limit with 403.
    if (status === 429 || (status === 403 && response.header('x-ratelimit-remaining') === '0')) {
      const asked =
        readRetryAfter(response.header('retry-after'), undefined, Date.now()) ??
        readRetryAfter(response.header('ratelimit-reset'), undefined, Date.now()) ??
        DEFAULT_PAUSE_SECS
      const secs = Math.min(asked, MAX_PAUSE_SECS)
      this.#pausedUntil = this.#now() + secs * 1000
      return this.#limited(secs)
    }
    const text = await readFailedBody(response)
    const said = shortened(text)
    if (status === 404 || status === 410)
      return new Refusal('not_found', `${name} (${this.#deps.base}) has none: ${said || status}`)
    if (status === 409) return new Refusal('conflict', `${name}: ${said}`, { details: { matches: matchesOf(text) } })
    if (status === 403 || status === 423 || status === 451)
      return new Refusal('forbidden', `${name} gives it to nobody: ${said || status}`)
    return new Refusal(hubFailed, `${name} answered ${status}: ${said}`)
  }
  #limited(secs: number): Refusal {
    return new Refusal('rate_limit', `${this.#deps.name} is asked too often: try again in ${Math.ceil(secs)} seconds`, {
      retryAfterSecs: secs,
    })
  }
}

const Ambiguous = v.object({ matches: v.array(v.object({ ref: v.string() })) })
/** Who else has a skill of this name: `@owner/slug`. */
function matchesOf(text: string): readonly string[] {
  const found = v.safeParse(Ambiguous, readFailedJson(text))
  return found.success ? found.output.matches.slice(0, 20).map(({ ref }) => ref) : []
}
