import type * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, trimSlashes } from 'svc/channels'
import type { ChannelLink, OutboundMessage, SentMessage } from 'svc/channels'
import type { ViberConfig } from './config.ts'
import { encodeMessage } from './encode.ts'
import { findError } from './errors.ts'
import { Account, Done, EVENT_TYPES, Sent } from './wire.ts'

/** The requests of one bot. */
export class ViberApi {
  readonly #config: ViberConfig
  readonly #client: ApiClient
  readonly #files: ApiClient
  readonly #base: string

  constructor(link: ChannelLink<ViberConfig>) {
    const { token, base_url: base } = link.config
    this.#config = link.config
    this.#base = trimSlashes(base)
    const common = { system: 'viber', findError, secrets: [token], refuseRedirects: true }
    this.#client = new ApiClient(link, { ...common, authenticate: () => ({ 'x-viber-auth-token': token }) })
    // Files have addresses that are credentials of their own: the token is not sent.
    this.#files = new ApiClient(link, common)
  }

  account = () => this.#call('get_account_info', {}, Account, 'the account')

  /** Viber calls the webhook before it answers. */
  async setWebhook(url: string): Promise<void> {
    await this.#call('set_webhook', { url, event_types: EVENT_TYPES, send_name: true }, Done, 'an answer')
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    await this.#call('send_message', encodeMessage(message, this.#config), Sent, 'the sent message')
    // Its token is a number of which JSON has lost the last digits by now, and there is nothing that would need it.
    return { id: '' }
  }

  async readFile(address: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const url = URL.parse(address)
    if (!url || !this.#isTrusted(url))
      throw new UpstreamFailure('viber', `viber: files are not read from ${url?.host ?? 'there'}`, {
        reason: 'invalid_request',
        retry: 'never',
      })
    return (await this.#files.open(address, { signal, streamIdleMs: 30_000, headers: { accept: '*/*' } })).chunks()
  }

  #isTrusted({ protocol, hostname, origin }: URL): boolean {
    if (origin === new URL(this.#base).origin) return true
    const isViber = /(?:^|\.)viber\.com$/.test(hostname)
    return protocol === 'https:' && (isViber || this.#config.download_hosts.includes(hostname))
  }

  #call<S extends v.GenericSchema>(method: string, json: object, schema: S, what: string) {
    return this.#client.json(`${this.#base}/${method}`, { json }, schema, what)
  }
}
