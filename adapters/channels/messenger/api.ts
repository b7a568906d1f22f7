import type * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, PartialSends, trimSlashes } from 'svc/channels'
import type { ApiRequest, ChannelLink, OutboundMessage, SentMessage } from 'svc/channels'
import type { MessengerConfig } from './config.ts'
import { encodeFile, encodeReaction, encodeText, encodeTyping } from './encode.ts'
import { findError } from './errors.ts'
import { Done, Page, Profile, Sent } from './wire.ts'

const UPLOAD_TIMEOUT_MS = 120_000
/** A name must not hold up a message for long. */
const NAME_TIMEOUT_MS = 3000

/** The requests of one page. */
export class MessengerApi {
  readonly #client: ApiClient
  readonly #files: ApiClient
  readonly #base: string
  readonly #config: MessengerConfig
  readonly #partial = new PartialSends()

  constructor(link: ChannelLink<MessengerConfig>) {
    const { token, app_secret: appSecret, verify_token: verifyToken, base_url: base, api_version } = link.config
    this.#config = link.config
    this.#base = `${trimSlashes(base)}/${api_version}`
    const common = { system: 'messenger', findError, secrets: [token, appSecret, verifyToken], refuseRedirects: true }
    this.#client = new ApiClient(link, { ...common, authenticate: () => ({ authorization: `Bearer ${token}` }) })
    // Files have addresses that are credentials of their own: the token is not sent.
    this.#files = new ApiClient(link, common)
  }

  /** The page that the token is for. */
  page = () => this.#call('/me?fields=id,name', {}, Page, 'the page')

  async userName(id: string): Promise<string> {
    const path = `/${encodeURIComponent(id)}?fields=first_name,last_name`
    const { first_name, last_name } = await this.#call(path, { timeoutMs: NAME_TIMEOUT_MS }, Profile, 'a profile')
    return `${first_name} ${last_name}`.trim()
  }

  /** A file has no text: it follows in a message of its own. */
  send(message: OutboundMessage): Promise<SentMessage> {
    const steps = message.attachments.map((file) => async () => {
      const form = await encodeFile(message, file)
      return this.#post({ form, timeoutMs: UPLOAD_TIMEOUT_MS })
    })
    if (message.text !== '') steps.unshift(() => this.#post({ json: encodeText(message) }))
    return this.#partial.send(message.id, steps)
  }

  async typing(chatId: string): Promise<void> {
    await this.#call('/me/messages', { json: encodeTyping(chatId) }, Done, 'an answer')
  }
  async react(chatId: string, messageId: string, emoji: string): Promise<void> {
    await this.#call('/me/messages', { json: encodeReaction(chatId, messageId, emoji) }, Done, 'an answer')
  }

  async readFile(address: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const url = URL.parse(address)
    if (!url || !this.#isTrusted(url))
      throw new UpstreamFailure('messenger', `messenger: files are not read from ${url?.host ?? 'there'}`, {
        reason: 'invalid_request',
        retry: 'never',
      })
    return (await this.#files.open(address, { signal, streamIdleMs: 30_000, headers: { accept: '*/*' } })).chunks()
  }

  #isTrusted({ protocol, hostname, origin }: URL): boolean {
    if (origin === new URL(this.#config.base_url).origin) return true
    const isMeta = /(?:^|\.)(?:fbcdn\.net|fbsbx\.com|facebook\.com)$/.test(hostname)
    return protocol === 'https:' && (isMeta || this.#config.download_hosts.includes(hostname))
  }

  async #post(request: ApiRequest): Promise<SentMessage> {
    return { id: (await this.#call('/me/messages', request, Sent, 'the sent message')).message_id }
  }
  #call<S extends v.GenericSchema>(path: string, request: ApiRequest, schema: S, what: string) {
    return this.#client.json(this.#base + path, request, schema, what)
  }
}
