import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { readJson, UpstreamFailure } from 'svc/sdk'
import type { ChannelLink } from './channel.ts'

const KEY = 'tokens'

export interface KeptTokensOptions<S extends v.GenericSchema> {
  readonly schema: S
  /** What the tokens are for, such as the server, the account and its password: for other values they are not used. */
  readonly owner: unknown
  /** Signs in, or renews the tokens that the platform does not accept any more. */
  obtain(rejected: v.InferOutput<S> | undefined): Promise<v.InferOutput<S>>
}

/** Tokens that an adapter obtains and renews itself. They are kept encrypted, and outlive the connection. */
export class KeptTokens<S extends v.GenericSchema> {
  readonly #link: Pick<ChannelLink<unknown>, 'secrets'>
  readonly #options: KeptTokensOptions<S>
  readonly #owner: string
  #tokens: Promise<v.InferOutput<S>> | undefined

  constructor(link: Pick<ChannelLink<unknown>, 'secrets'>, options: KeptTokensOptions<S>) {
    this.#link = link
    this.#options = options
    this.#owner = createHash('sha256').update(JSON.stringify(options.owner)).digest('hex')
  }

  /** Those that are kept, or else new ones. */
  current(): Promise<v.InferOutput<S>> {
    this.#tokens ??= this.#share(async () => (await this.#read()) ?? this.#obtain(undefined))
    return this.#tokens
  }

  /** Does the work, and does it again with new tokens when the platform refused it for the tokens alone. */
  async renewing<T>(work: () => Promise<T>): Promise<T> {
    const used = this.current()
    const tokens = await used
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || error.reason !== 'auth') throw error
    }
    // Several requests can find at once that a token has expired, and a refresh token is often good for one of them.
    if (this.#tokens === used) this.#tokens = this.#share(() => this.#obtain(tokens))
    await this.current()
    return work()
  }

  /** When it fails, the next call tries again. */
  #share(find: () => Promise<v.InferOutput<S>>): Promise<v.InferOutput<S>> {
    const found = find()
    found.catch(() => {
      if (this.#tokens === found) this.#tokens = undefined
    })
    return found
  }

  async #obtain(rejected: v.InferOutput<S> | undefined): Promise<v.InferOutput<S>> {
    const tokens = await this.#options.obtain(rejected)
    await this.#link.secrets.write(KEY, JSON.stringify({ owner: this.#owner, tokens }))
    return tokens
  }

  async #read(): Promise<v.InferOutput<S> | undefined> {
    const text = await this.#link.secrets.read(KEY)
    if (!text) return undefined
    const kept = v.safeParse(v.object({ owner: v.string(), tokens: this.#options.schema }), readJson(text))
    return kept.success && kept.output.owner === this.#owner ? kept.output.tokens : undefined
  }
}
