import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, trimSlashes } from 'svc/channels'
import type { ChannelLink, OutboundMessage, SentMessage } from 'svc/channels'
import type { FlockConfig } from './config.ts'
import { GROUP } from './decode.ts'
import { findError } from './errors.ts'
import { Sent } from './wire.ts'

const DOWNLOAD_IDLE_MS = 30_000

/** The methods that a bot may call. */
export class FlockApi {
  readonly #link: ChannelLink<FlockConfig>
  readonly #client: ApiClient
  readonly #files: ApiClient

  constructor(link: ChannelLink<FlockConfig>) {
    const { token, app_secret: appSecret } = link.config
    const common = { system: 'flock', secrets: [token, appSecret] }
    this.#link = link
    this.#client = new ApiClient(link, { ...common, findError, refuseRedirects: true })
    // Files are kept elsewhere, and need no credentials.
    this.#files = new ApiClient(link, common)
  }

  /** There is no method that tells about a bot: a message to nobody is refused after the token was accepted. */
  async check(): Promise<void> {
    try {
      await this.#send({})
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || error.reason !== 'invalid_request') throw error
    }
  }

  async send({ to, text }: OutboundMessage): Promise<SentMessage> {
    const { on_behalf_of: user } = this.#link.config
    const isGroup = to.chatId.startsWith(GROUP)
    if (isGroup && user === undefined)
      throw new UpstreamFailure('flock', 'Messages to channels of Flock need on_behalf_of', {
        reason: 'invalid_request',
        retry: 'never',
      })
    return this.#send({ to: to.chatId, text, ...(isGroup && user !== undefined && { onBehalfOf: user }) })
  }

  async readFile(url: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const request = { signal, headers: { accept: '*/*' }, streamIdleMs: DOWNLOAD_IDLE_MS }
    return (await this.#files.open(url, request)).chunks()
  }

  /** The token is a field of the form, as Flock wants it: never a part of the address. */
  async #send(fields: Readonly<Record<string, string>>): Promise<SentMessage> {
    const { token, base_url: base } = this.#link.config
    const request = {
      body: new URLSearchParams({ token, ...fields }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    }
    const { uid } = await this.#client.json(`${trimSlashes(base)}/chat.sendMessage`, request, Sent, 'the sent message')
    return { id: uid }
  }
}
