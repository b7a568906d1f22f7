import * as v from 'valibot'
import { Refusal } from 'svc/sdk'
import { ApiClient, bearerToken, PublishedKeys, readWebhookBody, verifyToken } from 'svc/channels'
import type { ChannelLink, WebhookAnswer, WebhookRequest } from 'svc/channels'
import type { GoogleChatConfig } from './config.ts'
import { decodeEvent } from './decode.ts'
import { Key, Keys } from './wire.ts'

const CHAT = 'chat@system.gserviceaccount.com'
const GOOGLE = 'https://accounts.google.com'

/** Takes events. Google Chat sends one again unless it is answered with success within 30 seconds. */
export class Webhook {
  readonly #link: ChannelLink<GoogleChatConfig>
  readonly #keys: PublishedKeys

  constructor(link: ChannelLink<GoogleChatConfig>) {
    const { endpoint_url: endpoint, chat_keys_url: ofChat, google_keys_url: ofGoogle } = link.config
    const client = new ApiClient(link, { system: 'google_chat', refuseRedirects: true })
    this.#link = link
    this.#keys = new PublishedKeys({
      now: () => link.now(),
      async read() {
        const { keys } = await client.json(endpoint === undefined ? ofChat : ofGoogle, {}, Keys, 'its keys')
        return keys.flatMap((key) => (v.is(Key, key) ? [key] : []))
      },
    })
  }

  async answer(request: WebhookRequest): Promise<WebhookAnswer> {
    if (request.method !== 'POST') return { status: 405, headers: { allow: 'POST' } }
    await this.#verify(bearerToken(request))
    const message = decodeEvent(readWebhookBody(request))
    if (message && this.#isRead(message.chat.id)) await this.#link.receive(message)
    // An empty object says nothing in the space: the answer comes when it is ready.
    return { status: 200, headers: { 'content-type': 'application/json; charset=utf-8' }, body: '{}' }
  }

  /** Source: https://developers.google.com/workspace/chat/verify-requests-from-chat */
  async #verify(token: string | undefined): Promise<void> {
    const { project_number: number, endpoint_url: endpoint } = this.#link.config
    const common = { algorithm: 'RS256', now: this.#link.now() } as const
    const find = (id: string) => this.#keys.find(id)
    if (endpoint === undefined) {
      // The configuration has one of both.
      await verifyToken(token, find, { ...common, issuer: CHAT, audience: number ?? '' })
      return
    }
    const claims = await verifyToken(token, find, { ...common, issuer: GOOGLE, audience: endpoint })
    // Google signs tokens for everybody: whose this is decides.
    const addOn = `service-${number}@gcp-sa-gsuiteaddons.iam.gserviceaccount.com`
    const isOfChat = claims['email'] === CHAT || (number !== undefined && claims['email'] === addOn)
    if (!isOfChat || claims['email_verified'] !== true)
      throw new Refusal('unauthorized', 'The token is not one of Google Chat')
  }

  #isRead(space: string): boolean {
    const { allowed_spaces: allowed } = this.#link.config
    return allowed.length === 0 || allowed.includes(space)
  }
}
