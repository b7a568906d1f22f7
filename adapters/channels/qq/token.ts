import { ApiClient } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'
import type { QqConfig } from './config.ts'
import { findError } from './errors.ts'
import { Token } from './wire.ts'

/** QQ gives another token only in the last minute of the present one, which holds until its end. */
const RENEW_EARLY_MS = 50_000

/** The access token of the bot, renewed before it expires. Requests at the same time share one exchange. */
export class AccessToken {
  readonly #link: ChannelLink<QqConfig>
  readonly #client: ApiClient
  /** Texts that must not appear in failures: the secret, and the present token. */
  readonly secrets: [secret: string, token: string]
  #expiresAt = 0
  #pending: Promise<string> | undefined

  constructor(link: ChannelLink<QqConfig>) {
    this.#link = link
    this.secrets = [link.config.token, '']
    this.#client = new ApiClient(link, { system: 'qq', findError, secrets: this.secrets, refuseRedirects: true })
  }

  async get(): Promise<string> {
    if (this.#link.now() < this.#expiresAt - RENEW_EARLY_MS) return this.secrets[1]
    this.#pending ??= this.#exchange().finally(() => (this.#pending = undefined))
    return this.#pending
  }

  /** QQ no longer takes this token. */
  invalidate(token: string): void {
    if (token === this.secrets[1]) this.#expiresAt = 0
  }

  async #exchange(): Promise<string> {
    const { app_id: appId, token: clientSecret, token_url: url } = this.#link.config
    const asked = this.#link.now()
    const answer = await this.#client.json(url, { json: { appId, clientSecret } }, Token, 'an access token')
    this.secrets[1] = answer.access_token
    this.#expiresAt = asked + answer.expires_in * 1000
    return answer.access_token
  }
}
