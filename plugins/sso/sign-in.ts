import { hash, randomBytes } from 'node:crypto'
import { AuthorizationResponseError } from 'oauth4webapi'
import * as v from 'valibot'
import { toIso } from 'svc/internal'
import type { Fetch } from 'svc/sdk'
import { refusalOf } from './config.ts'
import type { Identity, Provider } from './config.ts'
import { cookiesFor } from './cookie.ts'
import { unknownProvider } from './answers.ts'
import { Protocol } from './protocol.ts'
import { SealedCookie } from './sealed-cookie.ts'
import type { SessionStore } from './store.ts'

/** How long a person may take at the provider, and their page to fetch the token afterwards. */
const SIGN_IN_MS = 600_000,
  HANDOVER_MS = 60_000

const Pending = v.object({
  state: v.string(),
  nonce: v.string(),
  verifier: v.string(),
  provider: v.string(),
  page: v.boolean(),
  until: v.number(),
})
type Pending = v.InferOutput<typeof Pending>

interface Handover {
  readonly digest: string
  readonly identity: Identity
}

/** Why a sign-in failed; the page has a sentence for each. */
export type Failure = 'expired' | 'cancelled' | 'denied' | 'failed'
export class SignInFailed extends Error {
  override readonly name = 'SignInFailed'
  readonly failure: Failure
  /** Whether the chat page began it. */
  readonly page: boolean
  constructor(failure: Failure, page: boolean, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options)
    this.failure = failure
    this.page = page
  }
}

export interface SignInDeps {
  readonly fetch: Fetch
  readonly timeoutMs: number
  readonly now: () => number
  readonly store: SessionStore
  /** Of all daemons on the database, 32 bytes; absent where there is one. */
  readonly key: Uint8Array | undefined
}

/** The way to the provider and back. */
export class SignIn {
  readonly #protocols: ReadonlyMap<string, { readonly provider: Provider; readonly protocol: Protocol }>
  readonly #now: () => number
  readonly #sealed: SealedCookie
  /**
   * Used states, which are accepted once, and identities whose page has not fetched its token yet, by a digest of the
   * code that it must send: any daemon on the database may get the second step of a sign-in.
   */
  readonly #store: SessionStore

  constructor(providers: readonly Provider[], parts: SignInDeps) {
    this.#sealed = new SealedCookie(parts.key)
    this.#store = parts.store
    this.#protocols = new Map(
      providers.map((provider) => [provider.id, { provider, protocol: new Protocol(provider, parts) }]),
    )
    this.#now = parts.now
  }

  /** The address to send the browser to, and its cookie for the meantime. */
  async begin(id: string, page: boolean): Promise<{ readonly url: string; readonly cookie: string }> {
    const { provider, protocol } = this.#find(id)
    try {
      const { url, secrets } = await protocol.begin()
      const pending: Pending = { ...secrets, provider: id, page, until: this.#now() + SIGN_IN_MS }
      return {
        url,
        cookie: cookiesFor(provider.redirectUrl).set(this.#sealed.seal(pending), 'lax', SIGN_IN_MS / 1000),
      }
    } catch (cause) {
      throw new SignInFailed('failed', page, `The provider "${provider.displayName}" could not be reached`, { cause })
    }
  }

  /** The person who came back with this answer. Its state is used up, whatever the result. */
  async complete(
    answer: URLSearchParams,
    sealed: string | undefined,
  ): Promise<{ readonly identity: Identity; readonly page: boolean }> {
    const pending = await this.#take(answer, sealed)
    const { provider, protocol } = this.#find(pending.provider)
    const { page } = pending
    let identity: Identity
    try {
      identity = await protocol.complete(answer, pending)
    } catch (cause) {
      // The provider's `error_description` is for its own page: here it could be anybody's text.
      if (cause instanceof AuthorizationResponseError)
        throw new SignInFailed('cancelled', page, `The provider refused: ${readErrorCode(cause.error)}`)
      throw new SignInFailed('failed', page, `The answer of the provider "${provider.displayName}" could not be used`, {
        cause,
      })
    }
    const refusal = refusalOf(identity, provider)
    if (refusal !== undefined) throw new SignInFailed('denied', page, refusal)
    return { identity, page }
  }

  /**
   * For a page, which cannot read the answer of a redirect: it brings the code of its address, and the cookie, within a
   * minute.
   */
  async handOver(identity: Identity, redirectUrl: string): Promise<{ readonly code: string; readonly cookie: string }> {
    const [code, binding] = [randomBytes(32).toString('base64url'), randomBytes(32).toString('base64url')]
    const digest = keyOf(code, binding)
    // Who can write to the database only can neither make one nor move it to a code of theirs.
    await this.#insertOnce(digest, this.#sealed.seal({ digest, identity }), this.#now() + HANDOVER_MS)
    return { code, cookie: cookiesFor(redirectUrl).set(binding, 'strict', HANDOVER_MS / 1000) }
  }
  /** The identity for the page to sign in, once. */
  async take(code: string, binding: string | undefined): Promise<Identity | undefined> {
    const digest = keyOf(code, binding ?? '')
    const found = await this.#store.takeOnce(digest, toIso(this.#now()))
    const opened = found === undefined ? undefined : (this.#sealed.open(found) as Partial<Handover> | undefined)
    return opened?.digest === digest ? opened.identity : undefined
  }

  async #take(answer: URLSearchParams, sealed: string | undefined): Promise<Pending> {
    const parsed = v.safeParse(Pending, sealed === undefined ? undefined : this.#sealed.open(sealed))
    const pending = parsed.success ? parsed.output : undefined
    // A holder of the cookie knows the state, and the cookie is checked here: comparing in constant time would gain
    // nothing.
    const isValid = pending && pending.until > this.#now() && answer.get('state') === pending.state
    if (isValid && (await this.#insertOnce(keyOf('state', pending.state), '', pending.until))) return pending
    throw new SignInFailed(
      'expired',
      pending?.page ?? false,
      'This sign-in began too long ago, in another browser, or has ended: begin again at /api/auth/login',
    )
  }
  #insertOnce(digest: string, value: string, until: number): Promise<boolean> {
    return this.#store.insertOnce(digest, value, toIso(until), toIso(this.#now()))
  }

  #find(id: string): { readonly provider: Provider; readonly protocol: Protocol } {
    const found = this.#protocols.get(id)
    if (!found) throw unknownProvider(id, this.#protocols.keys())
    return found
  }
}

/** Only the characters that an error code may have (RFC 6749, 4.1.2.1). */
function readErrorCode(code: string): string {
  return /^[\x20-\x21\x23-\x5b\x5d-\x7e]{1,64}$/.test(code) ? code : 'for a reason it did not name'
}

const keyOf = (code: string, binding: string): string => hash('sha256', `${code}.${binding}`, 'hex')
