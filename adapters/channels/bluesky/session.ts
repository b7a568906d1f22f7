import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, KeptTokens, trimSlashes } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'
import type { BlueskyConfig } from './config.ts'
import { errorFinder } from './errors.ts'
import { Tokens } from './wire.ts'

/**
 * Signs in with the password, which an account may do a few times a day only, and refreshes the session:
 * https://docs.bsky.app/docs/advanced-guides/rate-limits
 */
export class Session {
  readonly tokens: KeptTokens<typeof Tokens>
  readonly #link: ChannelLink<BlueskyConfig>
  readonly #client: ApiClient

  constructor(link: ChannelLink<BlueskyConfig>) {
    const { base_url: base, identifier, token } = link.config
    this.#link = link
    this.#client = new ApiClient(link, {
      system: 'bluesky',
      findError: errorFinder(() => link.now()),
      secrets: [token],
      refuseRedirects: true,
    })
    this.tokens = new KeptTokens(link, {
      schema: Tokens,
      owner: [base, identifier, token],
      obtain: (rejected) => (rejected ? this.#refresh(rejected) : this.#signIn()),
    })
  }

  async #refresh({ refreshJwt }: Tokens): Promise<Tokens> {
    try {
      const request = { method: 'POST', headers: { authorization: `Bearer ${refreshJwt}` } }
      return await this.#client.json(this.#url('refreshSession'), request, Tokens, 'the session')
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || error.reason !== 'auth') throw error
    }
    return this.#signIn()
  }

  #signIn(): Promise<Tokens> {
    const { identifier, token: password } = this.#link.config
    return this.#client.json(this.#url('createSession'), { json: { identifier, password } }, Tokens, 'the session')
  }

  #url(method: string): string {
    return `${trimSlashes(this.#link.config.base_url)}/xrpc/com.atproto.server.${method}`
  }
}
