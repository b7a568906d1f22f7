import type * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, attachmentKind, ignoreMissing, PartialSends, trimSlashes } from 'svc/channels'
import type { ApiRequest, ChannelLink, InboundAttachment, OutboundMessage, SentMessage } from 'svc/channels'
import type { WebexConfig } from './config.ts'
import { encodeEdit, encodeFile, encodeMessage } from './encode.ts'
import { findError } from './errors.ts'
import { fileNameOf } from './file-name.ts'
import { Action, List, Message, Person, Room } from './wire.ts'

export const MAX_BYTES = 7439
export const PAGE = 50
const ROOMS = 100
const UPLOAD_TIMEOUT_MS = 120_000
const path = encodeURIComponent

/** The requests of one bot. */
export class WebexApi {
  readonly #client: ApiClient
  readonly #base: string
  readonly #partial = new PartialSends()

  constructor(link: ChannelLink<WebexConfig>) {
    const { token, webhook_secret: secret, base_url: base } = link.config
    this.#base = trimSlashes(base)
    this.#client = new ApiClient(link, {
      system: 'webex',
      authenticate: () => ({ authorization: `Bearer ${token}` }),
      findError,
      secrets: [token, secret],
      refuseRedirects: true,
    })
  }

  me = () => this.call('/people/me', {}, Person, 'the bot')
  message = (id: string) => this.call(`/messages/${path(id)}`, {}, Message, 'a message')
  action = (id: string) => this.call(`/attachment/actions/${path(id)}`, {}, Action, 'an action')
  room = (id: string) => this.call(`/rooms/${path(id)}`, {}, Room, 'a space')

  person = (id: string) => this.call(`/people/${path(id)}`, {}, Person, 'a person')

  /** The spaces in which something happened last, the newest first. */
  async rooms(): Promise<readonly unknown[]> {
    return (await this.call(`/rooms?sortBy=lastactivity&max=${ROOMS}`, {}, List, 'the list of spaces')).items
  }
  /** Messages of a space, the newest first, before one of them. */
  async messages(
    roomId: string,
    before: string | undefined,
    onlyMentions: boolean,
    signal: AbortSignal,
  ): Promise<readonly unknown[]> {
    const query = new URLSearchParams({ roomId, max: String(PAGE) })
    if (before !== undefined) query.set('beforeMessage', before)
    if (onlyMentions) query.set('mentionedPeople', 'me')
    return (await this.call(`/messages?${query}`, { signal }, List, 'the list of messages')).items
  }

  send(message: OutboundMessage): Promise<SentMessage> {
    const { attachments } = message
    if (attachments.length === 0) return this.#post({ json: encodeMessage(message) })
    const steps = attachments.map((file, index) => async () => {
      const form = await encodeFile(index === 0 ? message : { ...message, text: '' }, file)
      return this.#post({ form, timeoutMs: UPLOAD_TIMEOUT_MS })
    })
    return this.#partial.send(message.id, steps)
  }
  async edit(id: string, message: OutboundMessage): Promise<void> {
    const request = { method: 'PUT', json: encodeEdit(message) }
    await this.call(`/messages/${path(id)}`, request, Message, 'the edited message')
  }
  async delete(id: string): Promise<void> {
    await ignoreMissing(this.#discard(`${this.#base}/messages/${path(id)}`, { method: 'DELETE' }))
  }

  /** What is known of a file before it is read. */
  async describeFile(url: string): Promise<InboundAttachment> {
    const response = await this.#discard(this.#own(url), { method: 'HEAD' })
    const mime = response.header('content-type')?.split(';', 1)[0]?.trim() || 'application/octet-stream'
    const name = fileNameOf(response.header('content-disposition')) ?? 'file'
    const size = Number(response.header('content-length'))
    return { kind: attachmentKind(mime), name, mime, ...(size > 0 && { size }), reference: { url } }
  }
  async readFile(url: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const request = { signal, streamIdleMs: 30_000, headers: { accept: '*/*' } }
    return (await this.#client.open(this.#own(url), request)).chunks()
  }

  call<S extends v.GenericSchema>(path: string, request: ApiRequest, schema: S, what: string) {
    return this.#client.json(this.#base + path, request, schema, what)
  }

  /** The token goes to the API only, whatever a message says. */
  #own(address: string): string {
    const url = URL.parse(address)
    if (url?.origin === new URL(this.#base).origin) return address
    throw new UpstreamFailure('webex', `webex: files are not read from ${url?.host ?? 'there'}`, {
      reason: 'invalid_request',
      retry: 'never',
    })
  }
  async #discard(url: string, request: ApiRequest) {
    const response = await this.#client.open(url, request)
    await response.bytes()
    return response
  }
  async #post(request: ApiRequest): Promise<SentMessage> {
    return { id: (await this.call('/messages', request, Message, 'the sent message')).id }
  }
}
