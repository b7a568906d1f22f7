import { UpstreamFailure } from 'svc/sdk'

/** A token as the platform issues it. */
export interface IssuedToken {
  readonly token: string
  readonly expiresInSecs: number
}

/** Tokens are renewed this long before they expire, so that none expires on its way. */
const RENEW_EARLY_MS = 300_000

/**
 * The access token that the credentials of an account are exchanged for. Kept until shortly before it expires, or until
 * the platform refuses it.
 */
export class AccessToken {
  readonly #now: () => number
  readonly #exchange: () => Promise<IssuedToken>
  #current: { readonly token: string; readonly renewAt: number } | undefined
  #exchanging: Promise<string> | undefined

  constructor(deps: { now(): number; exchange(): Promise<IssuedToken> }) {
    this.#now = () => deps.now()
    this.#exchange = () => deps.exchange()
  }

  /** The token. Who asks while one is being issued waits for the same one. */
  get(): Promise<string> {
    if (this.#current && this.#now() < this.#current.renewAt) return Promise.resolve(this.#current.token)
    this.#exchanging ??= this.#renew()
    return this.#exchanging
  }

  /**
   * Makes a request with the token. A kept token that is refused may have been revoked: the request is made once more
   * with a new one. It was not carried out before.
   */
  async use<T>(request: (token: string) => Promise<T>): Promise<T> {
    const kept = this.#current
    const token = await this.get()
    try {
      return await request(token)
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || error.reason !== 'auth' || kept?.token !== token) throw error
      if (this.#current === kept) this.#current = undefined
      return request(await this.get())
    }
  }

  async #renew(): Promise<string> {
    try {
      const { token, expiresInSecs } = await this.#exchange()
      // Of a token that lives for minutes only, half of its life is used.
      const lifeMs = Math.max(expiresInSecs * 1000 - RENEW_EARLY_MS, expiresInSecs * 500)
      this.#current = { token, renewAt: this.#now() + lifeMs }
      return token
    } finally {
      this.#exchanging = undefined
    }
  }
}
