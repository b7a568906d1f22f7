import { UpstreamFailure } from 'svc/sdk'
import type { ChannelLink } from './channel.ts'

/** What a platform gives for the credentials of an app. */
export interface IssuedToken {
  readonly token: string
  /** Seconds for which the platform accepts it. */
  readonly lifetimeSecs: number
}

/** Tokens are renewed this long before they expire, so that none expires on its way, unless the platform gives them later. */
const RENEW_EARLY_MS = 300_000

/**
 * The access token that the credentials of an app are exchanged for. It is kept until shortly before it expires, or until
 * the platform refuses it.
 */
export class AccessToken {
  readonly #link: Pick<ChannelLink<unknown>, 'now'>
  readonly #issue: () => Promise<IssuedToken>
  readonly #renewEarlyMs: number
  #current: { readonly token: string; readonly renewAt: number } | undefined
  #pending: Promise<string> | undefined

  constructor(
    link: Pick<ChannelLink<unknown>, 'now'>,
    issue: () => Promise<IssuedToken>,
    renewEarlyMs = RENEW_EARLY_MS,
  ) {
    this.#link = link
    this.#issue = issue
    this.#renewEarlyMs = renewEarlyMs
  }

  /** The token. Who asks while one is being issued waits for the same one. */
  get(): Promise<string> {
    if (this.#current && this.#link.now() < this.#current.renewAt) return Promise.resolve(this.#current.token)
    this.#pending ??= this.#renew()
    return this.#pending
  }

  /**
   * Makes a request with the token. A failure with the reason `auth` and `retry: 'later'` means that the platform took the
   * token back before its time, or that it has expired: the request, which was not carried out, is made once more with a
   * new one. Throws what the request throws.
   */
  async use<T>(request: (token: string) => Promise<T>): Promise<T> {
    const token = await this.get()
    try {
      return await request(token)
    } catch (error) {
      if (!isOfToken(error)) throw error
      if (this.#current?.token === token) this.#current = undefined
    }
    const renewed = await this.get()
    try {
      return await request(renewed)
    } catch (error) {
      // A token that was just issued has not expired: the credentials are refused.
      throw isOfToken(error)
        ? new UpstreamFailure(error.system, error.message, { reason: 'auth', retry: 'never' })
        : error
    }
  }

  async #renew(): Promise<string> {
    try {
      const { token, lifetimeSecs } = await this.#issue()
      // Of a token that lives for minutes only, half of its life is used.
      const lifeMs = Math.max(lifetimeSecs * 1000 - this.#renewEarlyMs, lifetimeSecs * 500)
      this.#current = { token, renewAt: this.#link.now() + lifeMs }
      return token
    } finally {
      this.#pending = undefined
    }
  }
}

const isOfToken = (error: unknown): error is UpstreamFailure =>
  error instanceof UpstreamFailure && error.reason === 'auth' && error.retry === 'later'
