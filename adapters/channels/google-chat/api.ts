import type * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { AccessToken, ApiClient, ignoreMissing, trimSlashes } from 'svc/channels'
import type { ApiRequest, ChannelLink, IssuedToken, OutboundMessage, SentMessage } from 'svc/channels'
import type { GoogleChatConfig } from './config.ts'
import { encodeEdit, encodeMessage } from './encode.ts'
import { findError, findTokenError } from './errors.ts'
import { readServiceAccount, signGrant } from './service-account.ts'
import type { ServiceAccount } from './service-account.ts'
import { Sent, Token } from './wire.ts'

const SPACE = /^spaces\/[\w-]+$/
const MESSAGE = /^spaces\/[\w-]+\/messages\/[\w.-]+$/
const DOWNLOAD_IDLE_MS = 30_000

/** The requests of one app. */
export class GoogleChatApi {
  readonly #link: ChannelLink<GoogleChatConfig>
  readonly #account: ServiceAccount
  readonly #client: ApiClient
  readonly #login: ApiClient
  readonly #token: AccessToken
  readonly #base: string
  readonly #action: string

  constructor(link: ChannelLink<GoogleChatConfig>) {
    const { token, base_url: base, endpoint_url: endpoint } = link.config
    const account = readServiceAccount(token)
    if (!account) throw refused('The key of the service account cannot be read', 'auth')
    this.#link = link
    this.#account = account
    this.#base = trimSlashes(base)
    this.#action = endpoint ?? 'svc'
    const common = { system: 'google_chat', secrets: [account.private_key], refuseRedirects: true }
    this.#client = new ApiClient(link, { ...common, findError })
    this.#login = new ApiClient(link, { ...common, findError: findTokenError })
    this.#token = new AccessToken(link, () => this.#exchange())
  }

  get email(): string {
    return this.#account.client_email
  }

  /** Throws `UpstreamFailure` when the key is not accepted. */
  async authorize(): Promise<void> {
    await this.#token.get()
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    const { chatId, threadId } = message.to
    const query = new URLSearchParams({ requestId: message.id })
    if (threadId !== undefined) query.set('messageReplyOption', 'REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD')
    const url = `${this.#url(chatId, SPACE)}/messages?${query.toString()}`
    const { name } = await this.#json(url, { json: encodeMessage(message, this.#action) }, 'the sent message')
    return { id: name }
  }

  async edit(id: string, message: OutboundMessage): Promise<void> {
    const url = `${this.#url(id, MESSAGE)}?updateMask=text,accessory_widgets`
    await this.#json(url, { method: 'PATCH', json: encodeEdit(message, this.#action) }, 'the edited message')
  }

  async delete(id: string): Promise<void> {
    await ignoreMissing(this.#open(this.#url(id, MESSAGE), { method: 'DELETE' }))
  }

  /** A file that was uploaded to a message. */
  async readFile(resource: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const url = `${this.#base}/v1/media/${resource.split('/').map(encodeURIComponent).join('/')}?alt=media`
    const request = { signal, headers: { accept: '*/*' }, streamIdleMs: DOWNLOAD_IDLE_MS }
    return (await this.#open(url, request)).chunks()
  }

  async #exchange(): Promise<IssuedToken> {
    const { token_url: url } = this.#link.config
    const form = await signGrant(this.#account, url, this.#link.now())
    const request = { body: form.toString(), headers: { 'content-type': 'application/x-www-form-urlencoded' } }
    const { access_token: token, expires_in: lifetimeSecs } = await this.#login.json(url, request, Token, 'a token')
    return { token, lifetimeSecs }
  }

  /** The address of something by its name, which is a path. */
  #url(name: string, form: RegExp): string {
    if (form.test(name)) return `${this.#base}/v1/${name}`
    throw refused('This is not the name of a space or of a message of Google Chat', 'invalid_request')
  }

  #json(url: string, request: ApiRequest, what: string): Promise<v.InferOutput<typeof Sent>> {
    return this.#token.use((token) => this.#client.json(url, authorized(request, token), Sent, what))
  }
  #open(url: string, request: ApiRequest) {
    return this.#token.use((token) => this.#client.open(url, authorized(request, token)))
  }
}

function authorized(request: ApiRequest, token: string): ApiRequest {
  return { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } }
}

function refused(message: string, reason: 'auth' | 'invalid_request'): UpstreamFailure {
  return new UpstreamFailure('google_chat', message, { reason, retry: 'never' })
}
