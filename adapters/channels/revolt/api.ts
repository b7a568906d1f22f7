import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, ignoreMissing, PartialSends, trimSlashes } from 'svc/channels'
import type {
  ApiRequest,
  ChannelLink,
  Destination,
  OutboundAttachment,
  OutboundMessage,
  SentMessage,
} from 'svc/channels'
import type { RevoltConfig } from './config.ts'
import { encodeContent, encodeMessage } from './encode.ts'
import { findError, isDuplicate } from './errors.ts'
import { Channel, Message, MessageList, Node, Nonced, PlainList, Sent, Upload, User } from './wire.ts'

/** A message of the default limits has so many files at most. */
const MAX_FILES = 5
export const PAGE = 100
const UPLOAD_TIMEOUT_MS = 120_000
/** Keys that are tried for one message: a key is used up by an attempt that failed, too. */
const MAX_KEYS = 5

/** The requests of one bot. */
export class RevoltApi {
  readonly #config: RevoltConfig
  readonly #client: ApiClient
  readonly #files: ApiClient
  readonly #base: string
  readonly #partial = new PartialSends()
  #filesUrl: string | undefined

  constructor(link: ChannelLink<RevoltConfig>) {
    const { base_url: base, token } = link.config
    this.#config = link.config
    this.#base = trimSlashes(base)
    this.#client = new ApiClient(link, {
      system: 'revolt',
      findError,
      secrets: [token],
      authenticate: () => ({ 'x-bot-token': token }),
      refuseRedirects: true,
    })
    // Files are public for those who know their ids.
    this.#files = new ApiClient(link, { system: 'revolt', findError, refuseRedirects: true })
  }

  /** Finds the other addresses of the server, and returns that of the events. */
  async discover(): Promise<string> {
    const { ws_url: ws, files_url: files } = this.#config
    const node = ws && files ? undefined : await this.#client.json(`${this.#base}/`, {}, Node, 'its addresses')
    this.#filesUrl = trimSlashes(files ?? this.#trusted(node?.features.autumn.url ?? '', /^https:/i))
    return ws ?? this.#trusted(node?.ws ?? '', /^wss:/i)
  }

  me = () => this.#client.json(`${this.#base}/users/@me`, {}, User, 'the bot')

  user = (id: string) => this.#client.json(`${this.#base}/users/${encodeURIComponent(id)}`, {}, User, 'a user')

  channel = (id: string) => this.#client.json(this.#channel(id), {}, Channel, 'a channel')

  message = (channel: string, id: string) => this.#client.json(this.#message(channel, id), {}, Message, 'a message')

  /** A page of the messages after an id, the oldest first, with those who wrote them. */
  messagesAfter(channel: string, after: string) {
    const query = new URLSearchParams({ after, sort: 'Oldest', limit: String(PAGE), include_users: 'true' })
    const url = `${this.#channel(channel)}/messages?${query.toString()}`
    return this.#client.json(url, {}, MessageList, 'the messages of a channel')
  }

  send(message: OutboundMessage): Promise<SentMessage> {
    const { attachments, text, to } = message
    const groups = Array.from({ length: Math.max(1, Math.ceil(attachments.length / MAX_FILES)) }, (_, index) =>
      attachments.slice(index * MAX_FILES, (index + 1) * MAX_FILES),
    )
    const steps = groups.map((files, index) => () => {
      const key = index === 0 ? message.id : `${message.id}-${index}`
      return this.#post(to.chatId, key, async () => {
        const ids: string[] = []
        for (const file of files) ids.push(await this.#upload(file))
        return encodeMessage(index === 0 ? text : '', ids, message)
      })
    })
    return this.#partial.send(message.id, steps)
  }

  async edit({ id }: SentMessage, { to, text }: OutboundMessage): Promise<void> {
    const request = { method: 'PATCH', json: { content: encodeContent(text) } }
    await this.#client.json(this.#message(to.chatId, id), request, Sent, 'the edited message')
  }

  async delete({ id }: SentMessage, { chatId }: Destination): Promise<void> {
    await ignoreMissing(this.#client.open(this.#message(chatId, id), { method: 'DELETE' }))
  }

  async react({ chatId }: Destination, messageId: string, emoji: string): Promise<void> {
    const url = `${this.#message(chatId, messageId)}/reactions/${encodeURIComponent(emoji)}`
    await this.#client.open(url, { method: 'PUT' })
  }

  async readFile(id: string, name: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const url = `${this.#filesUrl}/attachments/${encodeURIComponent(id)}/${encodeURIComponent(name)}`
    return (await this.#files.open(url, { signal, headers: { accept: '*/*' } })).chunks()
  }

  /**
   * Posts one message. The server refuses a key that it has seen, also when the attempt with it came to nothing: only
   * the messages of the channel tell whether there is one with this key.
   */
  async #post(channel: string, key: string, encode: () => Promise<unknown>): Promise<SentMessage> {
    let refused: unknown
    for (let attempt = 0; attempt < MAX_KEYS; attempt++) {
      const headers = { 'idempotency-key': attempt === 0 ? key : `${key}.${attempt}` }
      try {
        return await this.#create(channel, { json: await encode(), headers })
      } catch (error) {
        if (!isDuplicate(error)) throw error
        refused = error
      }
      const earlier = attempt === 0 ? await this.#find(channel, key) : undefined
      if (earlier !== undefined) return { id: earlier, wasSentBefore: true }
    }
    throw refused
  }

  async #create(channel: string, request: ApiRequest): Promise<SentMessage> {
    const url = `${this.#channel(channel)}/messages`
    const { _id: id } = await this.#client.json(url, request, Sent, 'the sent message')
    return { id }
  }

  /** The message with this key among the newest ones. */
  async #find(channel: string, key: string): Promise<string | undefined> {
    const url = `${this.#channel(channel)}/messages?sort=Latest&limit=${PAGE}`
    const listed = await this.#client.json(url, {}, PlainList, 'the messages of a channel')
    const found = listed.find(
      (raw) => v.is(Nonced, raw) && (raw.nonce === key || raw.nonce?.startsWith(`${key}.`) === true),
    )
    return v.is(Nonced, found) ? found._id : undefined
  }

  async #upload(file: OutboundAttachment): Promise<string> {
    const form = new FormData()
    form.set('file', new Blob([new Uint8Array(await file.bytes())], { type: file.mime }), file.name)
    const request = { form, timeoutMs: UPLOAD_TIMEOUT_MS }
    const { id } = await this.#client.json(`${this.#filesUrl}/attachments`, request, Upload, 'the uploaded file')
    return id
  }

  /** The token goes to these addresses, too: never without encryption, when the API has one. */
  #trusted(url: string, encrypted: RegExp): string {
    if (/^(?:https?|wss?):\/\//i.test(url) && (encrypted.test(url) || !/^https:/i.test(this.#base))) return url
    throw new UpstreamFailure('revolt', 'revolt names an address that the token is not sent to', {
      reason: 'invalid_request',
      retry: 'never',
    })
  }

  #channel(id: string): string {
    return `${this.#base}/channels/${encodeURIComponent(id)}`
  }
  #message(channel: string, id: string): string {
    return `${this.#channel(channel)}/messages/${encodeURIComponent(id)}`
  }
}
