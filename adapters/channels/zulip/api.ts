import { ApiClient, ignoreMissing, PartialSends, trimSlashes } from 'svc/channels'
import type {
  ApiRequest,
  ChannelLink,
  Destination,
  OutboundAttachment,
  OutboundMessage,
  SentMessage,
} from 'svc/channels'
import type * as v from 'valibot'
import type { ZulipConfig } from './config.ts'
import { addressOf, encodeContent, encodeFile, encodeMessage, encodeTyping, fieldsOf } from './encode.ts'
import type { Address } from './encode.ts'
import { reactionName } from './emoji.ts'
import { findError } from './errors.ts'
import { Done, Events, Link, MessageList, One, OneUser, Queue, Sent, Upload, User } from './wire.ts'

export const MAX_CHARACTERS = 10_000
const PAGE = 200
/** The server ends a poll before it says it does; the network may take longer. */
const POLL_MARGIN_MS = 10_000
const UPLOAD_TIMEOUT_MS = 120_000

/** The requests of one bot. */
export class ZulipApi {
  readonly #link: ChannelLink<ZulipConfig>
  readonly #client: ApiClient
  readonly #files: ApiClient
  readonly #server: string
  readonly #partial = new PartialSends()

  constructor(link: ChannelLink<ZulipConfig>) {
    const { base_url: base, bot_email: email, token } = link.config
    const credentials = Buffer.from(`${email}:${token}`).toString('base64')
    this.#link = link
    this.#server = trimSlashes(base)
    const common = { system: 'zulip', findError, secrets: [token, credentials] }
    this.#client = new ApiClient(link, {
      ...common,
      authenticate: () => ({ authorization: `Basic ${credentials}` }),
      refuseRedirects: true,
    })
    // Temporary addresses need no credentials, and may lead to the store of the server.
    this.#files = new ApiClient(link, common)
  }

  me = () => this.#call('GET', '/users/me', {}, User, 'the bot')

  /** One of the organization. */
  isBot = async (id: number) => (await this.#call('GET', `/users/${id}`, {}, OneUser, 'a user')).user.is_bot === true

  register = () =>
    this.#call(
      'POST',
      '/register',
      { event_types: ['message', 'update_message'], apply_markdown: false, client_gravatar: true },
      Queue,
      'the queue of events',
    )

  /** Settles when there are events, and at the latest when the server sends a sign of life. Acknowledges earlier ones. */
  events = (queue: Queue, lastEventId: number, signal: AbortSignal) =>
    this.#call(
      'GET',
      '/events',
      { queue_id: queue.queue_id, last_event_id: lastEventId },
      Events,
      'the list of events',
      { signal, timeoutMs: queue.event_queue_longpoll_timeout_seconds * 1000 + POLL_MARGIN_MS },
    )

  /** The newest message, or those after one, oldest first. */
  messages = (after: number | 'newest') =>
    this.#call(
      'GET',
      '/messages',
      after === 'newest'
        ? { anchor: 'newest', num_before: 1, num_after: 0, apply_markdown: false }
        : { anchor: after, include_anchor: false, num_before: 0, num_after: PAGE, apply_markdown: false },
      MessageList,
      'the list of messages',
    )

  message = async (id: number) =>
    (await this.#call('GET', `/messages/${id}`, { apply_markdown: false }, One, 'a message')).message

  async send(message: OutboundMessage): Promise<SentMessage> {
    const address = addressOf(message.to, this.#link.config.topic)
    const links: string[] = []
    for (const file of message.attachments) links.push(await this.#upload(file))
    const text = encodeContent(message.text)
    const whole = [text, ...links].filter((part) => part !== '').join('\n')
    const isOne = [...whole].length <= MAX_CHARACTERS
    const contents = isOne ? [whole] : [text, links.join('\n')]
    const steps = contents.map((content) => () => this.#post(address, content))
    return this.#partial.send(message.id, steps)
  }

  async edit(id: string, { text }: OutboundMessage): Promise<void> {
    await this.#call(
      'PATCH',
      `/messages/${encodeURIComponent(id)}`,
      { content: encodeContent(text) },
      Done,
      'the edited message',
    )
  }

  async delete(id: string): Promise<void> {
    await ignoreMissing(this.#call('DELETE', `/messages/${encodeURIComponent(id)}`, {}, Done, 'the removed message'))
  }

  async typing(to: Destination): Promise<void> {
    const fields = encodeTyping(addressOf(to, this.#link.config.topic))
    await this.#client.json(`${this.#server}/api/v1/typing`, form(fields), Done, 'the typing indicator')
  }

  async react(id: string, emoji: string): Promise<void> {
    const path = `/messages/${encodeURIComponent(id)}/reactions`
    await this.#call('POST', path, { emoji_name: reactionName(emoji) }, Done, 'the reaction')
  }

  async readFile(path: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const { url } = await this.#call('GET', path, {}, Link, 'the address of a file', { signal })
    const { href } = new URL(url, `${this.#server}/`)
    return (await this.#files.open(href, { signal, headers: { accept: '*/*' } })).chunks()
  }

  async #post(address: Address, content: string): Promise<SentMessage> {
    const request = form(encodeMessage(address, content))
    const { id } = await this.#client.json(`${this.#server}/api/v1/messages`, request, Sent, 'the sent message')
    return { id: String(id) }
  }

  async #upload(file: OutboundAttachment): Promise<string> {
    const body = new FormData()
    body.set('filename', new Blob([new Uint8Array(await file.bytes())], { type: file.mime }), file.name)
    const url = `${this.#server}/api/v1/user_uploads`
    const answer = await this.#client.json(
      url,
      { form: body, timeoutMs: UPLOAD_TIMEOUT_MS },
      Upload,
      'the uploaded file',
    )
    return encodeFile(file.name, 'url' in answer ? answer.url : answer.uri)
  }

  #call<S extends v.GenericSchema>(
    method: string,
    path: string,
    values: Readonly<Record<string, unknown>>,
    schema: S,
    what: string,
    more: ApiRequest = {},
  ): Promise<v.InferOutput<S>> {
    const fields = fieldsOf(values)
    const url = `${this.#server}/api/v1${path}`
    return method === 'GET'
      ? this.#client.json(fields.size === 0 ? url : `${url}?${fields.toString()}`, more, schema, what)
      : this.#client.json(url, { ...form(fields), method, ...more }, schema, what)
  }
}

function form(fields: URLSearchParams): ApiRequest {
  return { method: 'POST', body: fields.toString(), headers: { 'content-type': 'application/x-www-form-urlencoded' } }
}
