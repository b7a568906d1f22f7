import { omitUndefined, UpstreamFailure } from 'svc/sdk'
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
import type { RocketChatConfig } from './config.ts'
import { reactionName } from './emoji.ts'
import { encodeText } from './encode.ts'
import { findError } from './errors.ts'
import { Changes, Done, Found, Me, RoomInfo, RoomList, Sent, Upload } from './wire.ts'

const UPLOAD_TIMEOUT_MS = 120_000

/** The requests of one account. */
export class RocketChatApi {
  readonly #userId: string
  readonly #client: ApiClient
  readonly #files: ApiClient
  readonly #base: string
  readonly #partial = new PartialSends()

  constructor(link: ChannelLink<RocketChatConfig>) {
    const { base_url: base, token, user_id: userId } = link.config
    const common = {
      system: 'rocketchat',
      findError: (answer: Parameters<typeof findError>[0]) => findError(answer, link.now()),
      secrets: [token],
      authenticate: () => ({ 'x-auth-token': token, 'x-user-id': userId }),
    }
    this.#userId = userId
    this.#base = trimSlashes(base)
    this.#client = new ApiClient(link, { ...common, refuseRedirects: true })
    // A server may redirect to the store of its files, to which the token does not follow.
    this.#files = new ApiClient(link, common)
  }

  get socketUrl(): string {
    return `${this.#base.replace(/^http/i, 'ws')}/websocket`
  }

  me = () => this.#call('me', {}, Me, 'the bot')

  /** The rooms of the bot; those that changed since a time. */
  rooms = (since?: number) => this.#call(`rooms.get${querySince('updatedSince', since)}`, {}, RoomList, 'the rooms')

  room = async (id: string) =>
    (await this.#call(`rooms.info?roomId=${encodeURIComponent(id)}`, {}, RoomInfo, 'a room')).room

  /** What was written or edited in a room since a time; the newest comes first. */
  messagesSince = async (room: string, since: number) => {
    const path = `chat.syncMessages${querySince('lastUpdate', since)}&roomId=${encodeURIComponent(room)}`
    return (await this.#call(path, {}, Changes, 'the messages of a room')).result.updated
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    const { id, to, text, attachments } = message
    const texts = text === '' ? [] : [() => this.#post(id, to, encodeText(text))]
    const files = attachments.map((file) => () => this.#sendFile(to, file))
    return this.#partial.send(id, [...texts, ...files])
  }

  async edit(id: string, { to, text }: OutboundMessage): Promise<void> {
    await this.#call(
      'chat.update',
      { json: { roomId: to.chatId, msgId: id, text: encodeText(text) } },
      Done,
      'the edited message',
    )
  }

  async delete(id: string, { chatId }: Destination): Promise<void> {
    const json = { roomId: chatId, msgId: id }
    await ignoreMissing(this.#call('chat.delete', { json }, Done, 'the removed message'))
  }

  async react(messageId: string, emoji: string): Promise<void> {
    const json = { messageId, emoji: reactionName(emoji), shouldReact: true }
    await this.#call('chat.react', { json }, Done, 'the reaction')
  }

  async readFile(id: string, name: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const url = `${this.#base}/file-upload/${encodeURIComponent(id)}/${encodeURIComponent(name)}`
    return (await this.#files.open(url, { signal, headers: { accept: '*/*' } })).chunks()
  }

  /** The id of a message is chosen by who sends it: the server stores no second one with it. */
  async #post(id: string, { chatId, threadId }: Destination, text: string): Promise<SentMessage> {
    const message = omitUndefined({ _id: id, rid: chatId, msg: text, tmid: threadId })
    let failure: unknown
    try {
      const sent = await this.#call('chat.sendMessage', { json: { message } }, Sent, 'the sent message')
      if (sent.message) return { id: sent.message._id }
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || error.reason !== 'invalid_request') throw error
      failure = error
    }
    // Of a message that it has already, the server says nothing, or that it cannot read nothing.
    if (await this.#isSent(id)) return { id, wasSentBefore: true }
    throw (
      failure ??
      new UpstreamFailure('rocketchat', 'rocketchat did not store the message', { reason: 'malformed', retry: 'later' })
    )
  }

  async #isSent(id: string): Promise<boolean> {
    try {
      const path = `chat.getMessage?msgId=${encodeURIComponent(id)}`
      return (await this.#call(path, {}, Found, 'a message')).message.u._id === this.#userId
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || error.retry === 'later' || error.reason === 'auth') throw error
      return false
    }
  }

  async #sendFile({ chatId, threadId }: Destination, file: OutboundAttachment): Promise<SentMessage> {
    const room = encodeURIComponent(chatId)
    const form = new FormData()
    form.set('file', new Blob([new Uint8Array(await file.bytes())], { type: file.mime }), file.name)
    const request = { form, timeoutMs: UPLOAD_TIMEOUT_MS }
    const { file: stored } = await this.#call(`rooms.media/${room}`, request, Upload, 'the uploaded file')
    const path = `rooms.mediaConfirm/${room}/${encodeURIComponent(stored._id)}`
    const json = omitUndefined({ tmid: threadId })
    const { message } = await this.#call(path, { json }, Sent, 'the sent file')
    return { id: message?._id ?? '' }
  }

  #call<S extends v.GenericSchema>(path: string, request: ApiRequest, schema: S, what: string) {
    return this.#client.json(`${this.#base}/api/v1/${path}`, request, schema, what)
  }
}

function querySince(name: string, since: number | undefined): string {
  return since === undefined ? '' : `?${name}=${encodeURIComponent(new Date(since).toISOString())}`
}
