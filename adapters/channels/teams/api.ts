import type * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { AccessToken, ApiClient, ignoreMissing, RecentMap, trimSlashes } from 'svc/channels'
import type { ApiRequest, ChannelLink, Destination, IssuedToken, OutboundMessage, SentMessage } from 'svc/channels'
import type { TeamsConfig } from './config.ts'
import { conversationId } from './conversation.ts'
import { reactionName } from './emoji.ts'
import { encodeMessage } from './encode.ts'
import { findError, findTokenError } from './errors.ts'
import { isServiceUrl } from './service-url.ts'
import { Sent, Token } from './wire.ts'

const SCOPE = 'https://api.botframework.com/.default'
/** Bots of several tenants get their tokens from this one. */
const SHARED_TENANT = 'botframework.com'
const MAX_CHATS = 5000
const DOWNLOAD_IDLE_MS = 30_000

/** The requests of one bot. */
export class TeamsApi {
  readonly #link: ChannelLink<TeamsConfig>
  readonly #client: ApiClient
  readonly #login: ApiClient
  readonly #files: ApiClient
  readonly #token: AccessToken
  /** The address of the service in each chat. */
  readonly #services = new RecentMap<string, string>(MAX_CHATS)
  readonly #secrets: string[]

  constructor(link: ChannelLink<TeamsConfig>) {
    this.#link = link
    this.#secrets = [link.config.token, encodeURIComponent(link.config.token)]
    const common = { system: 'teams', secrets: this.#secrets }
    this.#client = new ApiClient(link, { ...common, findError, refuseRedirects: true })
    this.#login = new ApiClient(link, { ...common, findError: findTokenError, refuseRedirects: true })
    this.#files = new ApiClient(link, common)
    this.#token = new AccessToken(link, () => this.#exchange())
  }

  /** Throws `UpstreamFailure` when the credentials are not accepted. */
  async authorize(): Promise<void> {
    await this.#token.get()
  }

  /** A message came from this address, which is one of Teams: answers go there. */
  remember(chatId: string, serviceUrl: string): void {
    this.#services.set(chatId, serviceUrl)
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    const json = encodeMessage(message)
    return this.#json(this.#activities(message.to), { json }, Sent, 'the sent message')
  }

  async edit(id: string, message: OutboundMessage): Promise<void> {
    const json = { ...encodeMessage(message), id }
    await this.#json(this.#activity(message.to, id), { method: 'PUT', json }, Sent, 'the edited message')
  }

  async delete(to: Destination, id: string): Promise<void> {
    await ignoreMissing(this.#open(this.#activity(to, id), { method: 'DELETE' }))
  }

  async typing(to: Destination): Promise<void> {
    await this.#open(this.#activities(to), { json: { type: 'typing' } })
  }

  async react(to: Destination, id: string, emoji: string): Promise<void> {
    const name = encodeURIComponent(reactionName(emoji))
    await this.#open(`${this.#activity(to, id)}/reactions/${name}`, { method: 'PUT' })
  }

  /** A picture in a text, which the Bot Connector keeps. */
  async readImage(url: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    if (!isServiceUrl(url, this.#link.config)) throw unreadable('the picture is not kept by Teams')
    const request = { signal, headers: { accept: '*/*' }, streamIdleMs: DOWNLOAD_IDLE_MS }
    return (await this.#open(url, request)).chunks()
  }

  /** A file at an address that needs no credentials, and gets none. */
  async readFile(url: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const { protocol, origin } = URL.parse(url) ?? {}
    if (protocol !== 'https:' && origin !== new URL(this.#link.config.base_url).origin)
      throw unreadable('the file has no address that can be read')
    const request = { signal, headers: { accept: '*/*' }, streamIdleMs: DOWNLOAD_IDLE_MS }
    return (await this.#files.open(url, request)).chunks()
  }

  async #exchange(): Promise<IssuedToken> {
    const { app_id: id, token: secret, tenant_id: tenant = SHARED_TENANT, login_url: login } = this.#link.config
    const grant = { grant_type: 'client_credentials', client_id: id, client_secret: secret, scope: SCOPE }
    const url = `${trimSlashes(login)}/${tenant}/oauth2/v2.0/token`
    const request = {
      body: new URLSearchParams(grant).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    }
    const { access_token: token, expires_in: lifetimeSecs } = await this.#login.json(url, request, Token, 'a token')
    this.#secrets[2] = token
    return { token, lifetimeSecs }
  }

  #activities(to: Destination): string {
    return `${this.#service(to)}/v3/conversations/${encodeURIComponent(conversationId(to))}/activities`
  }
  #activity(to: Destination, id: string): string {
    return `${this.#activities(to)}/${encodeURIComponent(id)}`
  }

  /** The service differs from one region to the next. What is stored with a message is checked again. */
  #service({ chatId, replyContext }: Destination): string {
    const stored = replyContext?.['serviceUrl']
    const known = typeof stored === 'string' ? stored : this.#services.get(chatId)
    const isUsable = known !== undefined && isServiceUrl(known, this.#link.config)
    return trimSlashes(isUsable ? known : this.#link.config.base_url)
  }

  #json<S extends v.GenericSchema>(url: string, request: ApiRequest, schema: S, what: string) {
    return this.#token.use((token) => this.#client.json(url, authorized(request, token), schema, what))
  }
  #open(url: string, request: ApiRequest) {
    return this.#token.use((token) => this.#client.open(url, authorized(request, token)))
  }
}

function authorized(request: ApiRequest, token: string): ApiRequest {
  return { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } }
}

function unreadable(message: string): UpstreamFailure {
  return new UpstreamFailure('teams', message, { reason: 'not_found', retry: 'never' })
}
