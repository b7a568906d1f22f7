import type * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { AccessToken, ApiClient, trimSlashes } from 'svc/channels'
import type { ApiRequest, ChannelLink, OutboundMessage, SentMessage } from 'svc/channels'
import { robotOf } from './config.ts'
import type { DingTalkConfig } from './config.ts'
import { DIRECT } from './decode.ts'
import { encodeMessage, encodeSessionMessage } from './encode.ts'
import { findError, findSessionError } from './errors.ts'
import type { Sessions } from './sessions.ts'
import { Download, Endpoint, Sent, SessionSent, Token } from './wire.ts'

/** Messages to the robot. */
export const TOPIC = '/v1.0/im/bot/messages/get'
const STREAM_IDLE_MS = 30_000

/** The requests of one robot. */
export class DingTalkApi {
  readonly #link: ChannelLink<DingTalkConfig>
  readonly #client: ApiClient
  readonly #session: ApiClient
  readonly #files: ApiClient
  readonly #access: AccessToken
  readonly #base: string

  constructor(link: ChannelLink<DingTalkConfig>) {
    const { token, base_url: base } = link.config
    this.#link = link
    this.#base = trimSlashes(base)
    const common = { system: 'dingtalk', secrets: [token] }
    this.#client = new ApiClient(link, { ...common, findError, refuseRedirects: true })
    this.#session = new ApiClient(link, { ...common, findError: findSessionError, refuseRedirects: true })
    // Files are kept elsewhere, at temporary addresses that need no credentials.
    this.#files = new ApiClient(link, common)
    this.#access = new AccessToken(link, () => this.#issueToken())
  }

  /** Whether the credentials hold. */
  async checkCredentials(): Promise<void> {
    await this.#access.use(async () => undefined)
  }

  /** The address of a connection in Stream mode, which can be used once. */
  async endpoint(): Promise<string> {
    const { app_key: clientId, token: clientSecret } = this.#link.config
    const json = { clientId, clientSecret, subscriptions: [{ type: 'CALLBACK', topic: TOPIC }], ua: 'svc' }
    const url = `${this.#base}/v1.0/gateway/connections/open`
    const { endpoint, ticket } = await this.#client.json(url, { json }, Endpoint, 'the address of a connection')
    const address = new URL(endpoint)
    address.searchParams.set('ticket', ticket)
    return address.href
  }

  /** Answers by the session of the chat, which counts for no quota and needs no permission, as long as there is one. */
  async send(message: OutboundMessage, sessions: Sessions): Promise<SentMessage> {
    const { chatId } = message.to
    const session = sessions.find(chatId)
    if (session !== undefined) {
      try {
        const request = { json: encodeSessionMessage(message) }
        await this.#session.json(session, request, SessionSent, 'the sent message')
        // DingTalk does not tell the id of such a message.
        return { id: '' }
      } catch (error) {
        if (!(error instanceof UpstreamFailure) || error.retry === 'later') throw error
        sessions.forget(chatId)
      }
    }
    return this.#sendAsRobot(message)
  }

  async readFile(code: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const request = { json: { downloadCode: code, robotCode: robotOf(this.#link.config) }, signal }
    const path = '/v1.0/robot/messageFiles/download'
    const { downloadUrl } = await this.#call(path, request, Download, 'the address of a file')
    const options = { signal, headers: { accept: '*/*' }, streamIdleMs: STREAM_IDLE_MS }
    return (await this.#files.open(downloadUrl, options)).chunks()
  }

  async #sendAsRobot(message: OutboundMessage): Promise<SentMessage> {
    const { path, json } = encodeMessage(message, robotOf(this.#link.config))
    const sent = await this.#call(path, { json }, Sent, 'the sent message')
    const person = message.to.chatId.slice(DIRECT.length)
    if (sent.invalidStaffIdList?.includes(person))
      throw new UpstreamFailure('dingtalk', 'dingtalk does not know this person, or the robot may not write to them', {
        reason: 'not_found',
        retry: 'never',
      })
    if (sent.flowControlledStaffIdList?.includes(person))
      throw new UpstreamFailure('dingtalk', 'dingtalk limits the messages to this person', {
        reason: 'rate_limit',
        retry: 'later',
      })
    return { id: sent.processQueryKey }
  }

  async #issueToken() {
    const { app_key: appKey, token: appSecret } = this.#link.config
    const url = `${this.#base}/v1.0/oauth2/accessToken`
    const { accessToken: token, expireIn: lifetimeSecs } = await this.#client.json(
      url,
      { json: { appKey, appSecret } },
      Token,
      'the access token',
    )
    return { token, lifetimeSecs }
  }

  #call<S extends v.GenericSchema>(
    path: string,
    request: ApiRequest,
    schema: S,
    what: string,
  ): Promise<v.InferOutput<S>> {
    return this.#access.use((token) => {
      const headers = { 'x-acs-dingtalk-access-token': token }
      return this.#client.json(`${this.#base}${path}`, { ...request, headers }, schema, what)
    })
  }
}
