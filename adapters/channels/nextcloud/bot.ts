import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, pause, pollInBackground, trimSlashes } from 'svc/channels'
import type { ChannelConnection, ChannelLink, OutboundMessage, SentMessage } from 'svc/channels'
import type { NextcloudConfig } from './config.ts'
import { encodeMessage, encodeText, signRequest } from './encode.ts'
import { findBotError } from './errors.ts'
import { NextcloudWebhook } from './webhook.ts'
import { Capabilities, Done } from './wire.ts'

type Link = ChannelLink<NextcloudConfig>
const CHECK_MS = 60_000

/** A bot that is installed on the server: it hears of messages by webhook, and signs what it sends. */
export async function openBot(link: Link): Promise<ChannelConnection> {
  const api = new BotApi(link)
  await api.check()
  const webhook = new NextcloudWebhook(link)
  const background = pollInBackground(link, async (signal) => {
    if (await pause(link, CHECK_MS, signal)) await api.check()
  })
  return {
    closed: background.closed,
    send: (message) => api.send(message),
    react: (to, messageId, emoji) => api.react(to.chatId, messageId, emoji),
    webhook: (request) => webhook.answer(request),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

/** A bot can ask nothing about itself: whether the secret holds shows when it sends. */
export async function probeBot(link: Link): Promise<{ readonly account: string }> {
  await new BotApi(link).check()
  const { bot_name: name = 'a bot', base_url: base } = link.config
  return { account: `${name} on ${new URL(base).host}` }
}

class BotApi {
  readonly #client: ApiClient
  readonly #secret: string
  readonly #base: string

  constructor(link: Link) {
    const { base_url: base, token } = link.config
    this.#secret = token
    this.#base = `${trimSlashes(base)}/ocs/v2.php`
    this.#client = new ApiClient(link, {
      system: 'nextcloud',
      findError: findBotError,
      secrets: [token],
      authenticate: () => ({ 'ocs-apirequest': 'true' }),
      refuseRedirects: true,
    })
  }

  /** Throws unless the server has Talk. */
  async check(): Promise<void> {
    const { ocs } = await this.#client.json(`${this.#base}/cloud/capabilities`, {}, Capabilities, 'its capabilities')
    if (ocs.data.capabilities.spreed != null) return
    throw new UpstreamFailure('nextcloud', 'The server has no Talk', { reason: 'invalid_request', retry: 'never' })
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    // A bot cannot send files.
    const missing = message.attachments.map(({ name }) => `[The file ${name} was not sent: bots cannot send files.]`)
    const text = encodeText([message.text, ...missing].filter((part) => part !== '').join('\n\n'))
    await this.#post(`${encodeURIComponent(message.to.chatId)}/message`, text, encodeMessage(message, text))
    // The server does not tell the id.
    return { id: '' }
  }

  async react(room: string, messageId: string, emoji: string): Promise<void> {
    await this.#post(`${encodeURIComponent(room)}/reaction/${encodeURIComponent(messageId)}`, emoji, {
      reaction: emoji,
    })
  }

  async #post(path: string, signed: string, json: object): Promise<void> {
    const headers = signRequest(this.#secret, signed)
    const url = `${this.#base}/apps/spreed/api/v1/bot/${path}`
    await this.#client.json(url, { json, headers }, Done, 'the answer to a bot')
  }
}
