import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, ignoreMissing, trimSlashes } from 'svc/channels'
import type { ApiAnswer, ApiError, ChannelLink, Destination, OutboundMessage, SentMessage } from 'svc/channels'
import { CLOSED_URL } from './config.ts'
import type { GuildedConfig } from './config.ts'
import { encodeContent, encodeMessage } from './encode.ts'
import { Failure, Me, MemberAnswer, Sent } from './wire.ts'
import type { Member } from './wire.ts'

/** The requests of one bot. */
export class GuildedApi {
  readonly #client: ApiClient
  readonly #config: GuildedConfig
  readonly #base: string

  constructor(link: ChannelLink<GuildedConfig>) {
    this.#config = link.config
    this.#base = trimSlashes(link.config.base_url)
    refuseClosed(this.#base)
    refuseClosed(this.socketUrl)
    this.#client = new ApiClient(link, {
      system: 'guilded',
      findError,
      secrets: [link.config.token],
      authenticate: () => ({ authorization: `Bearer ${link.config.token}` }),
      refuseRedirects: true,
    })
  }

  get socketUrl(): string {
    return this.#config.ws_url ?? `${new URL(this.#base).origin.replace(/^http/i, 'ws')}/websocket/v1`
  }

  me = async () => (await this.#client.json(`${this.#base}/users/@me`, {}, Me, 'the bot')).user

  /** Somebody as a member of a server, or in a direct chat. */
  async member(server: string | undefined, id: string): Promise<Member> {
    const user = encodeURIComponent(id)
    if (server === undefined) {
      const answer = await this.#client.json(`${this.#base}/users/${user}`, {}, Me, 'a user')
      return { user: answer.user, nickname: undefined, roleIds: [] }
    }
    const url = `${this.#base}/servers/${encodeURIComponent(server)}/members/${user}`
    return (await this.#client.json(url, {}, MemberAnswer, 'a member')).member
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    const request = { json: encodeMessage(message) }
    const { id } = (await this.#client.json(this.#messages(message.to), request, Sent, 'the sent message')).message
    return { id }
  }

  async edit({ id }: SentMessage, { to, text }: OutboundMessage): Promise<void> {
    const request = { method: 'PUT', json: { content: encodeContent(text) } }
    await this.#client.json(`${this.#messages(to)}/${encodeURIComponent(id)}`, request, Sent, 'the edited message')
  }

  async delete({ id }: SentMessage, to: Destination): Promise<void> {
    const url = `${this.#messages(to)}/${encodeURIComponent(id)}`
    await ignoreMissing(this.#client.open(url, { method: 'DELETE' }))
  }

  #messages({ chatId }: Destination): string {
    return `${this.#base}/channels/${encodeURIComponent(chatId)}/messages`
  }
}

/** Whoever has the name of the platform now must not get the tokens of its bots. */
function refuseClosed(url: string): void {
  const { hostname } = new URL(url)
  if (!/(?:^|\.)guilded\.gg$/i.test(hostname)) return
  throw new UpstreamFailure(
    'guilded',
    `Guilded closed in December 2025: set base_url to a server that speaks its protocol, instead of ${CLOSED_URL}`,
    { reason: 'invalid_request', retry: 'never' },
  )
}

function findError({ ok, body }: ApiAnswer): ApiError | undefined {
  if (ok) return undefined
  const parsed = v.safeParse(Failure, body)
  const { code, message } = parsed.success ? parsed.output : {}
  return { message: [code, message].filter((part) => part != null).join(': ') || undefined }
}
