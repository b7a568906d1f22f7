import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { readJson, UpstreamFailure } from 'svc/sdk'
import { ApiClient, trimSlashes } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'
import type { BlueskyConfig } from './config.ts'
import { errorFinder } from './errors.ts'
import { Tokens } from './wire.ts'

const SESSION = 'session'
const Kept = v.object({ of: v.string(), tokens: Tokens })

/**
 * The tokens that signing in gave. They are kept and refreshed, as an account may sign in a few times a day only:
 * https://docs.bsky.app/docs/advanced-guides/rate-limits
 */
export class Session {
  /** The present ones, never to be shown. */
  readonly secrets: string[]
  readonly #link: ChannelLink<BlueskyConfig>
  #tokens: Promise<Tokens> | undefined

  constructor(link: ChannelLink<BlueskyConfig>) {
    this.#link = link
    this.secrets = [link.config.token]
  }

  tokens(): Promise<Tokens> {
    this.#tokens ??= this.#once(() => this.#begin())
    return this.#tokens
  }

  /** Does the work, and does it again with new tokens when the server refused it for the token alone. */
  async renewing<T>(work: () => Promise<T>): Promise<T> {
    const used = this.tokens()
    const { refreshJwt } = await used
    try {
      return await work()
    } catch (error) {
      if (!isAuth(error)) throw error
    }
    // Several requests can find at once that a token has expired; a refresh token is good for one of them.
    if (this.#tokens === used) this.#tokens = this.#once(() => this.#renew(refreshJwt))
    await this.tokens()
    return work()
  }

  /** The next call tries again when this one fails. */
  #once(find: () => Promise<Tokens>): Promise<Tokens> {
    const found = find()
    found.catch(() => {
      if (this.#tokens === found) this.#tokens = undefined
    })
    return found
  }

  async #begin(): Promise<Tokens> {
    const kept = await this.#read()
    if (!kept) return this.#signIn()
    this.#keepSecret(kept)
    return kept
  }

  async #renew(refreshJwt: string): Promise<Tokens> {
    try {
      return await this.#request('com.atproto.server.refreshSession', refreshJwt)
    } catch (error) {
      if (!isAuth(error)) throw error
    }
    await this.#link.secrets.write(SESSION, '')
    return this.#signIn()
  }

  #signIn(): Promise<Tokens> {
    return this.#request('com.atproto.server.createSession')
  }

  /** With the password unless there is a token. */
  async #request(method: string, token?: string): Promise<Tokens> {
    const { base_url: base, identifier, token: password } = this.#link.config
    const client = new ApiClient(this.#link, {
      system: 'bluesky',
      findError: errorFinder(() => this.#link.now()),
      secrets: this.secrets,
      refuseRedirects: true,
    })
    const request =
      token === undefined
        ? { json: { identifier, password } }
        : { method: 'POST', headers: { authorization: `Bearer ${token}` } }
    const tokens = await client.json(`${trimSlashes(base)}/xrpc/${method}`, request, Tokens, 'the session')
    this.#keepSecret(tokens)
    await this.#link.secrets.write(SESSION, JSON.stringify({ of: this.#owner(), tokens }))
    return tokens
  }

  #keepSecret({ accessJwt, refreshJwt }: Tokens): void {
    this.secrets.splice(1, Infinity, accessJwt, refreshJwt)
  }

  async #read(): Promise<Tokens | undefined> {
    const text = await this.#link.secrets.read(SESSION)
    const kept = text ? v.safeParse(Kept, readJson(text)) : undefined
    return kept?.success && kept.output.of === this.#owner() ? kept.output.tokens : undefined
  }

  /** Another account, server or password is another session. */
  #owner(): string {
    const { base_url: base, identifier, token } = this.#link.config
    return createHash('sha256')
      .update(JSON.stringify([base, identifier, token]))
      .digest('hex')
  }
}

const isAuth = (error: unknown): boolean => error instanceof UpstreamFailure && error.reason === 'auth'
