import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, trimSlashes } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'
import type { MatrixConfig } from './config.ts'
import { asSignInFailure, findError } from './errors.ts'
import { Login } from './wire.ts'

const TOKEN = 'access_token'
const DEVICE = 'device_id'

/**
 * The access token: that of the configuration, or one that signing in with the password gave. It is kept, as every
 * sign-in makes a new device, and transaction ids are known for the same device only.
 */
export class Credentials {
  readonly #link: ChannelLink<MatrixConfig>
  #token: Promise<string> | undefined

  constructor(link: ChannelLink<MatrixConfig>) {
    this.#link = link
  }

  token(): Promise<string> {
    this.#token ??= this.#find()
    return this.#token
  }

  /** The homeserver does not accept the token. Returns whether it was one that signing in again replaces. */
  async drop(): Promise<boolean> {
    this.#token = undefined
    const { config, secrets } = this.#link
    if (config.token !== undefined || !(await secrets.read(TOKEN))) return false
    await secrets.write(TOKEN, '')
    return true
  }

  /** Does the work, and does it again with another token when the homeserver refused it for the token alone. */
  async renewing<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      const isEnded = error instanceof UpstreamFailure && error.reason === 'auth'
      if (!isEnded || !(await this.drop())) throw error
    }
    return work()
  }

  async #find(): Promise<string> {
    const { config, secrets } = this.#link
    if (config.token !== undefined) return config.token
    const kept = await secrets.read(TOKEN)
    if (kept) return kept
    const token = await this.#signIn()
    await secrets.write(TOKEN, token)
    return token
  }

  async #signIn(): Promise<string> {
    const { config, state } = this.#link
    const { user = '', password = '' } = config
    const device = await this.#device()
    const client = new ApiClient(this.#link, {
      system: 'matrix',
      findError,
      secrets: [password],
      refuseRedirects: true,
    })
    const json = {
      type: 'm.login.password',
      identifier: { type: 'm.id.user', user },
      password,
      device_id: device,
      initial_device_display_name: 'svc',
    }
    try {
      const url = `${trimSlashes(config.base_url)}/_matrix/client/v3/login`
      const { access_token: token } = await client.json(url, { json }, Login, 'the access token')
      await state.write(DEVICE, device)
      return token
    } catch (error) {
      throw asSignInFailure(error)
    }
  }

  async #device(): Promise<string> {
    return (await this.#link.state.read(DEVICE)) || `SVC${crypto.randomUUID().slice(0, 8).toUpperCase()}`
  }
}
