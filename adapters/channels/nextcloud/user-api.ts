import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, ignoreMissing, PartialSends, trimSlashes } from 'svc/channels'
import type { ApiRequest, ChannelLink, OutboundAttachment, OutboundMessage, SentMessage } from 'svc/channels'
import type { NextcloudConfig } from './config.ts'
import { encodeMessage, encodeText, referenceOf } from './encode.ts'
import { findError } from './errors.ts'
import { Done, Me, Message, Messages, RoomList, Sent } from './wire.ts'

/** A message can have 32,000 characters, each written as `\uXXXX`, and comes with the one it answers. */
const PAGE = 50
const UPLOAD_TIMEOUT_MS = 120_000
/** A share with a conversation. */
const SHARE_TYPE = 10

/** The requests of one account. */
export class NextcloudUserApi {
  readonly #client: ApiClient
  readonly #base: string
  readonly #folder: string
  readonly #partial = new PartialSends()

  constructor(link: ChannelLink<NextcloudConfig>) {
    const { base_url: base, username = '', token, upload_folder: folder } = link.config
    const credentials = Buffer.from(`${username}:${token}`).toString('base64')
    this.#base = trimSlashes(base)
    this.#folder = folder
    this.#client = new ApiClient(link, {
      system: 'nextcloud',
      findError,
      secrets: [token, credentials],
      authenticate: () => ({ authorization: `Basic ${credentials}`, 'ocs-apirequest': 'true' }),
      refuseRedirects: true,
    })
  }

  me = async () => (await this.#ocs('cloud/user', {}, Me, 'the account')).ocs.data

  /** The conversations of the account; those that changed since a time in seconds. */
  rooms = async (since: number | undefined) => {
    const query = since === undefined ? '' : `&modifiedSince=${since}`
    const path = `apps/spreed/api/v4/room?noStatusUpdate=1${query}`
    return (await this.#ocs(path, {}, RoomList, 'the list of conversations')).ocs.data
  }

  /** Messages of a conversation after one, the oldest first; none when there are no more. */
  async messagesAfter(room: string, last: number) {
    const query = `lookIntoFuture=1&timeout=0&limit=${PAGE}&lastKnownMessageId=${last}&setReadMarker=0&noStatusUpdate=1`
    try {
      return (await this.#chat(room, `?${query}`, {}, Messages, 'the messages of a conversation')).ocs.data
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || error.reason !== 'not_found') throw error
      return []
    }
  }

  async send(message: OutboundMessage, userId: string): Promise<SentMessage> {
    const { id, to, text, attachments } = message
    const texts = text === '' ? [] : [() => this.#post(message)]
    const files = attachments.map((file) => () => this.#share(to.chatId, id, userId, file))
    return this.#partial.send(id, [...texts, ...files])
  }

  async edit(id: string, { to, text }: OutboundMessage): Promise<void> {
    await this.#chat(
      to.chatId,
      `/${encodeURIComponent(id)}`,
      { method: 'PUT', json: { message: encodeText(text) } },
      Done,
      'the edited message',
    )
  }

  async delete(id: string, room: string): Promise<void> {
    await ignoreMissing(
      this.#chat(room, `/${encodeURIComponent(id)}`, { method: 'DELETE' }, Done, 'the removed message'),
    )
  }

  async react(room: string, id: string, emoji: string): Promise<void> {
    const path = `apps/spreed/api/v1/reaction/${encodeURIComponent(room)}/${encodeURIComponent(id)}`
    await this.#ocs(path, { json: { reaction: emoji } }, Done, 'the reaction')
  }

  async readFile(userId: string, path: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const request = { signal, headers: { accept: '*/*' } }
    return (await this.#client.open(this.#fileUrl(userId, path), request)).chunks()
  }

  async #post(message: OutboundMessage): Promise<SentMessage> {
    const { chatId } = message.to
    const earlier = message.mayBeSent ? await this.#find(chatId, referenceOf(message.id)) : undefined
    if (earlier !== undefined) return { id: String(earlier), wasSentBefore: true }
    const { ocs } = await this.#chat(
      chatId,
      '',
      { json: encodeMessage(message, encodeText(message.text)) },
      Sent,
      'the sent message',
    )
    return { id: String(ocs.data.id) }
  }

  async #find(room: string, reference: string): Promise<number | undefined> {
    const query = `?lookIntoFuture=0&limit=${PAGE}&setReadMarker=0&noStatusUpdate=1`
    const { ocs } = await this.#chat(room, query, {}, Messages, 'the messages of a conversation')
    return ocs.data.find((raw) => v.is(Message, raw) && raw.referenceId === reference)?.id
  }

  /** A folder for each message, so that files keep their names. */
  async #share(room: string, id: string, userId: string, file: OutboundAttachment): Promise<SentMessage> {
    const folder = `${this.#folder}/${id}`
    const path = `${folder}/${file.name.replaceAll('/', '_')}`
    for (const each of [this.#folder, folder])
      // The failure of one that exists already is that of a message that is gone.
      await ignoreMissing(this.#client.open(this.#fileUrl(userId, each), { method: 'MKCOL' }))
    const body = await file.bytes()
    const headers = { 'content-type': file.mime }
    await this.#client.open(this.#fileUrl(userId, path), { method: 'PUT', body, headers, timeoutMs: UPLOAD_TIMEOUT_MS })
    const json = { shareType: SHARE_TYPE, shareWith: room, path: `/${path}`, referenceId: referenceOf(`${id} ${path}`) }
    await this.#ocs('apps/files_sharing/api/v1/shares', { json }, Done, 'the shared file')
    // What comes back is about the share, and not about the message.
    return { id: '' }
  }

  #fileUrl(userId: string, path: string): string {
    const segments = [userId, ...path.split('/').filter((part) => part !== '')].map(encodeURIComponent)
    return `${this.#base}/remote.php/dav/files/${segments.join('/')}`
  }

  #chat<S extends v.GenericSchema>(room: string, rest: string, request: ApiRequest, schema: S, what: string) {
    return this.#ocs(`apps/spreed/api/v1/chat/${encodeURIComponent(room)}${rest}`, request, schema, what)
  }

  #ocs<S extends v.GenericSchema>(path: string, request: ApiRequest, schema: S, what: string) {
    return this.#client.json(`${this.#base}/ocs/v2.php/${path}`, request, schema, what)
  }
}
