import type * as v from 'valibot'
import * as schemas from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, ignoreMissing, trimSlashes } from 'svc/channels'
import type {
  ApiRequest,
  ChannelLink,
  Destination,
  OutboundAttachment,
  OutboundMessage,
  SentMessage,
} from 'svc/channels'
import type { MatrixConfig } from './config.ts'
import { encodeEdit, encodeFile, encodeNotice, encodeReaction, encodeText, transactionId } from './encode.ts'
import { findError } from './errors.ts'
import { Members, MessagePage, Sent, SyncAnswer, Uploaded, WhoAmI } from './wire.ts'
import type { Credentials } from './credentials.ts'

const MESSAGES_PER_PAGE = 100
const TYPING_MS = 30_000
/** What the homeserver waits for events, and the time an answer may take beside it. */
const SYNC_WAIT_MS = 30_000
const SYNC_TIMEOUT_MS = 60_000
const FILTER = JSON.stringify({
  presence: { types: [] },
  account_data: { types: [] },
  room: {
    account_data: { types: [] },
    ephemeral: { types: [] },
    state: { types: ['m.room.member'], lazy_load_members: true },
    timeline: { types: ['m.room.message', 'm.room.encrypted', 'm.room.member'], limit: 50 },
  },
})

/** The client-server API for one account. */
export class MatrixApi {
  readonly #client: ApiClient
  readonly #base: string

  constructor(link: ChannelLink<MatrixConfig>, credentials: Credentials) {
    this.#base = trimSlashes(link.config.base_url)
    this.#client = new ApiClient(link, {
      system: 'matrix',
      findError,
      secrets: [link.config.token ?? '', link.config.password ?? ''],
      authenticate: async () => ({ authorization: `Bearer ${await credentials.token()}` }),
      refuseRedirects: true,
    })
  }

  whoAmI = () => this.#json('/v3/account/whoami', {}, WhoAmI, 'the account')

  /** Events since the position. Without one: where the account is now, at once. */
  sync(since: string | undefined, signal: AbortSignal): Promise<SyncAnswer> {
    const query = new URLSearchParams({ filter: FILTER, timeout: String(since === undefined ? 0 : SYNC_WAIT_MS) })
    if (since !== undefined) query.set('since', since)
    return this.#json(`/v3/sync?${query}`, { signal, timeoutMs: SYNC_TIMEOUT_MS }, SyncAnswer, 'events')
  }

  /** Older events of a room, the newest first, from one position back to another. */
  messagesBefore(room: string, from: string, to: string) {
    const query = new URLSearchParams({ dir: 'b', from, to, limit: String(MESSAGES_PER_PAGE) })
    return this.#json(`${roomPath(room)}/messages?${query}`, {}, MessagePage, 'the messages of a room')
  }

  members = (room: string) => this.#json(`${roomPath(room)}/joined_members`, {}, Members, 'the members of a room')

  async join(room: string): Promise<void> {
    await this.#json(`${roomPath(room)}/join`, { json: {} }, schemas.object({}), 'the joined room')
  }

  /** A text and its files are an event each. Each has its own transaction, so none appears twice. */
  async send(message: OutboundMessage): Promise<SentMessage> {
    const ids: string[] = []
    if (message.text !== '' || message.attachments.length === 0)
      ids.push(await this.#put(message.to.chatId, 'm.room.message', message.id, encodeText(message)))
    for (const [index, file] of message.attachments.entries()) {
      const content = encodeFile(message, file, await this.#upload(file))
      ids.push(await this.#put(message.to.chatId, 'm.room.message', `${message.id}.${index + 1}`, content))
    }
    return { id: ids[0] ?? '' }
  }

  /** Tells a room something about the bot itself, once. Other bots do not answer it. */
  async notify(room: string, text: string): Promise<void> {
    await this.#put(room, 'm.room.message', transactionId('notify', room, text), encodeNotice(text))
  }

  async edit(id: string, message: OutboundMessage): Promise<string> {
    const transaction = transactionId('edit', id, message.id, message.text)
    return this.#put(message.to.chatId, 'm.room.message', transaction, encodeEdit(message, id))
  }

  /** Takes the content of an event away, and its edits with it. */
  async redact(room: string, id: string): Promise<void> {
    const path = `${roomPath(room)}/redact/${encodeURIComponent(id)}/${encodeURIComponent(transactionId('redact', id))}`
    await ignoreMissing(this.#json(path, { method: 'PUT', json: {} }, Sent, 'the removed event'))
  }

  async react(to: Destination, id: string, key: string): Promise<void> {
    await this.#put(to.chatId, 'm.reaction', transactionId('react', id, key), encodeReaction(id, key))
  }

  async typing(to: Destination, user: string): Promise<void> {
    const url = this.#url(`${roomPath(to.chatId)}/typing/${encodeURIComponent(user)}`)
    await this.#client.open(url, { method: 'PUT', json: { typing: true, timeout: TYPING_MS } })
  }

  async download(uri: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const path = uri
      .replace(/^mxc:\/\//, '')
      .split('/')
      .map(encodeURIComponent)
      .join('/')
    const request = { signal, headers: { accept: '*/*' } }
    try {
      return (await this.#client.open(this.#url(`/v1/media/download/${path}`), request)).chunks()
    } catch (error) {
      // Homeservers before version 1.11 of the specification have it in another place.
      if (!(error instanceof UpstreamFailure) || !error.message.includes('M_UNRECOGNIZED')) throw error
      return (await this.#client.open(`${this.#base}/_matrix/media/v3/download/${path}`, request)).chunks()
    }
  }

  async #upload(file: OutboundAttachment): Promise<string> {
    const url = `${this.#base}/_matrix/media/v3/upload?${new URLSearchParams({ filename: file.name })}`
    const request = { method: 'POST', body: await file.bytes(), headers: { 'content-type': file.mime } }
    return (await this.#client.json(url, request, Uploaded, 'the uploaded file')).content_uri
  }

  async #put(room: string, type: string, transaction: string, json: unknown): Promise<string> {
    const path = `${roomPath(room)}/send/${type}/${encodeURIComponent(transaction)}`
    return (await this.#json(path, { method: 'PUT', json }, Sent, 'the sent event')).event_id
  }

  #url(path: string): string {
    return `${this.#base}/_matrix/client${path}`
  }

  #json<S extends v.GenericSchema>(path: string, request: ApiRequest, schema: S, what: string) {
    return this.#client.json(this.#url(path), request, schema, what)
  }
}

function roomPath(room: string): string {
  return `/v3/rooms/${encodeURIComponent(room)}`
}
