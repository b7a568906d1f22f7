import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, KeptTokens, trimSlashes } from 'svc/channels'
import type { ApiRequest, ChannelLink, OutboundMessage, SentMessage } from 'svc/channels'
import type * as v from 'valibot'
import type { TwitchConfig } from './config.ts'
import { encodeMessage } from './encode.ts'
import { dropFailure, DUPLICATE, errorFinder, findAuthError } from './errors.ts'
import { Account, Renewed, Sent, Subscribed, Tokens, UserList } from './wire.ts'

const SCOPES = ['user:read:chat', 'user:write:chat']

/** The requests of one bot. */
export class TwitchApi {
  readonly #link: ChannelLink<TwitchConfig>
  readonly #tokens: KeptTokens<typeof Tokens>
  readonly #auth: ApiClient
  readonly #client: ApiClient

  constructor(link: ChannelLink<TwitchConfig>) {
    const { token, refresh_token: refresh, client_id: clientId, client_secret: clientSecret } = link.config
    const secrets = [token, token.replace(/^oauth:/, ''), refresh ?? '', clientSecret ?? '']
    this.#link = link
    this.#auth = new ApiClient(link, { system: 'twitch', findError: findAuthError, secrets, refuseRedirects: true })
    this.#client = new ApiClient(link, {
      system: 'twitch',
      findError: errorFinder(() => link.now()),
      secrets,
      authenticate: async () => ({
        authorization: `Bearer ${(await this.#tokens.current()).access}`,
        'client-id': clientId,
      }),
      refuseRedirects: true,
    })
    this.#tokens = new KeptTokens(link, {
      schema: Tokens,
      owner: [clientId, token, refresh],
      obtain: (rejected) => this.#obtain(rejected),
    })
  }

  /** Checks the token, as Twitch wants it once an hour. */
  async account(): Promise<Account> {
    const account = await this.#tokens.renewing(async () => {
      const authorization = `OAuth ${(await this.#tokens.current()).access}`
      const url = `${trimSlashes(this.#link.config.auth_url)}/validate`
      return this.#auth.json(url, { headers: { authorization } }, Account, 'the account')
    })
    if (account.client_id !== this.#link.config.client_id)
      throw authFailure('the token is for another application than that of `client_id`')
    const missing = SCOPES.filter((scope) => !account.scopes?.includes(scope))
    if (missing.length > 0) throw authFailure(`the token lacks the scope ${missing.join(' and ')}`)
    return account
  }

  users = async (logins: readonly string[]) =>
    (await this.#call(`/users?${new URLSearchParams(logins.map((login) => ['login', login]))}`, {}, UserList, 'users'))
      .data

  /** Has the messages of a chat sent to a session. */
  subscribe = (broadcasterId: string, userId: string, sessionId: string) =>
    this.#call(
      '/eventsub/subscriptions',
      {
        json: {
          type: 'channel.chat.message',
          version: '1',
          condition: { broadcaster_user_id: broadcasterId, user_id: userId },
          transport: { method: 'websocket', session_id: sessionId },
        },
      },
      Subscribed,
      'the subscription',
    )

  async send(message: OutboundMessage, senderId: string): Promise<SentMessage> {
    const json = encodeMessage(message, senderId)
    const { data } = await this.#call('/chat/messages', { json }, Sent, 'the sent message')
    const { message_id: id, is_sent: isSent, drop_reason: reason } = data[0]
    if (isSent) return { id: id ?? '' }
    const { code = '', message: text } = reason ?? {}
    // The earlier attempt, whose answer was lost.
    if (message.mayBeSent && code === DUPLICATE) return { id: '', wasSentBefore: true }
    throw dropFailure(code, text ?? '')
  }

  async #obtain(rejected: Tokens | undefined): Promise<Tokens> {
    const { config } = this.#link
    // Tools for IRC show tokens with a prefix.
    if (!rejected) return { access: config.token.replace(/^oauth:/, ''), refresh: config.refresh_token }
    if (rejected.refresh === undefined) throw authFailure('the token has ended, and there is no `refresh_token`')
    const form = new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: rejected.refresh,
      client_id: config.client_id,
      ...(config.client_secret !== undefined && { client_secret: config.client_secret }),
    })
    const request = {
      body: form.toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    }
    const renewed = await this.#auth.json(`${trimSlashes(config.auth_url)}/token`, request, Renewed, 'the token')
    return { access: renewed.access_token, refresh: renewed.refresh_token ?? rejected.refresh }
  }

  #call<S extends v.GenericSchema>(
    path: string,
    request: ApiRequest,
    schema: S,
    what: string,
  ): Promise<v.InferOutput<S>> {
    const url = `${trimSlashes(this.#link.config.base_url)}${path}`
    return this.#tokens.renewing(() => this.#client.json(url, request, schema, what))
  }
}

const authFailure = (message: string): UpstreamFailure =>
  new UpstreamFailure('twitch', message, { reason: 'auth', retry: 'never' })
