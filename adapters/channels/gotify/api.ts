import * as v from 'valibot'
import { ApiClient, trimSlashes } from 'svc/channels'
import type { ApiAnswer, ApiError, ChannelLink, OutboundMessage, SentMessage } from 'svc/channels'
import type { GotifyConfig } from './config.ts'
import { ownIdOf } from './decode.ts'
import { encodeMessage } from './encode.ts'
import { ApplicationList, Failure, Message, MessagePage, Sent, User } from './wire.ts'

/** The most that the server gives at once. */
const PAGE = 200

/** The requests of one user: as a client to read, as an application to send. */
export class GotifyApi {
  readonly #link: ChannelLink<GotifyConfig>
  readonly #reader: ApiClient
  readonly #sender: ApiClient
  readonly #base: string

  constructor(link: ChannelLink<GotifyConfig>) {
    const { base_url: base, client_token: clientToken, token } = link.config
    this.#link = link
    this.#base = trimSlashes(base)
    this.#reader = clientOf(link, clientToken)
    this.#sender = clientOf(link, token)
  }

  get streamUrl(): string {
    return `${this.#base.replace(/^http/i, 'ws')}/stream`
  }

  user = () => this.#reader.json(`${this.#base}/current/user`, {}, User, 'the user')

  applications = () => this.#reader.json(`${this.#base}/application`, {}, ApplicationList, 'the list of applications')

  /** The newest messages first: those with an id below `since`, where it is not 0. */
  async page(since: number, limit = PAGE): Promise<{ readonly messages: readonly Message[]; readonly since: number }> {
    const query = `limit=${limit}${since === 0 ? '' : `&since=${since}`}`
    const page = await this.#reader.json(`${this.#base}/message?${query}`, {}, MessagePage, 'the list of messages')
    const messages = page.messages.flatMap((raw) => {
      const message = v.safeParse(Message, raw)
      return message.success ? [message.output] : []
    })
    return { messages, since: page.paging.since }
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    const earlier = message.mayBeSent ? await this.#findSent(message.id) : undefined
    if (earlier !== undefined) return { id: String(earlier), wasSentBefore: true }
    const json = encodeMessage(message, this.#link.config)
    const { id } = await this.#sender.json(`${this.#base}/message`, { json }, Sent, 'the sent message')
    return { id: String(id) }
  }

  async delete(id: string): Promise<void> {
    await this.#reader.open(`${this.#base}/message/${encodeURIComponent(id)}`, { method: 'DELETE' })
  }

  async #findSent(id: string): Promise<number | undefined> {
    const { messages } = await this.page(0)
    return messages.find((message) => ownIdOf(message) === id)?.id
  }
}

function clientOf(link: ChannelLink<GotifyConfig>, token: string): ApiClient {
  return new ApiClient(link, {
    system: 'gotify',
    findError,
    secrets: [token],
    authenticate: () => ({ 'x-gotify-key': token }),
    refuseRedirects: true,
  })
}

/** A token is for one user: what it may not do, it may do in no chat. */
function findError({ ok, status, body }: ApiAnswer): ApiError | undefined {
  if (ok) return undefined
  const parsed = v.safeParse(Failure, body)
  return {
    message: parsed.success ? parsed.output.errorDescription : undefined,
    reason: status === 403 ? 'auth' : undefined,
  }
}
