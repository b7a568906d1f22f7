/** Tokens are renewed this long before they expire, so that none expires on its way. */
const RENEW_EARLY_MS = 60_000

export interface ExpiringToken {
  /** In ms since 1970. */
  readonly expiresAt: number
}

/**
 * The access token that a key was exchanged for. Kept until shortly before it expires; concurrent callers share one
 * exchange, and a failed exchange is not kept.
 */
export class TokenCache<Key, Token extends ExpiringToken> {
  readonly #exchange: (key: Key) => Promise<Token>
  #current: { readonly key: Key; readonly token: Token } | undefined
  #pending: { readonly key: Key; readonly token: Promise<Token> } | undefined

  constructor(exchange: (key: Key) => Promise<Token>) {
    this.#exchange = exchange
  }

  async get(key: Key, signal: AbortSignal): Promise<Token> {
    signal.throwIfAborted()
    const current = this.#current
    if (current?.key === key && Date.now() < current.token.expiresAt - RENEW_EARLY_MS) return current.token
    if (this.#pending?.key !== key) this.#pending = { key, token: this.#renew(key) }
    return abortable(this.#pending.token, signal)
  }
  clear(): void {
    this.#current = undefined
  }

  async #renew(key: Key): Promise<Token> {
    try {
      const token = await this.#exchange(key)
      this.#current = { key, token }
      return token
    } finally {
      if (this.#pending?.key === key) this.#pending = undefined
    }
  }
}

/** Rejects on abort. The promise goes on: one caller's abort must not end what others wait for. */
async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>()
  const onAbort = (): void => aborted.reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([promise, aborted.promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
