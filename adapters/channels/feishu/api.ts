import type * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { AccessToken, ApiClient, ignoreMissing, PartialSends, trimSlashes } from 'svc/channels'
import type { ApiRequest, ChannelLink, OutboundAttachment, OutboundMessage, SentMessage } from 'svc/channels'
import { platformOf } from './config.ts'
import type { FeishuConfig } from './config.ts'
import { reactionName } from './emoji.ts'
import { encodeCard, encodeMessage, encodeReply } from './encode.ts'
import type { Content } from './encode.ts'
import { findError } from './errors.ts'
import { Bot, Chat, Done, Endpoint, File, Image, Reaction, Sent, Token, User } from './wire.ts'

const UPLOAD_TIMEOUT_MS = 120_000
const STREAM_IDLE_MS = 30_000
/** Larger pictures are sent as files. */
const MAX_IMAGE_BYTES = 10_000_000
const IMAGE = /^image\/(?:jpeg|png|webp|gif|tiff|bmp)$/

/** A file of a message. */
export interface Resource {
  readonly message: string
  readonly key: string
  readonly type: 'image' | 'file'
}

/** The requests of one app. */
export class FeishuApi {
  readonly #link: ChannelLink<FeishuConfig>
  readonly #client: ApiClient
  readonly #base: string
  readonly #access: AccessToken
  readonly #partial = new PartialSends()

  constructor(link: ChannelLink<FeishuConfig>) {
    const { token, encrypt_key: key = '', verification_token: verification = '' } = link.config
    this.#link = link
    this.#base = trimSlashes(platformOf(link.config))
    this.#client = new ApiClient(link, {
      system: 'feishu',
      findError,
      secrets: [token, key, verification],
      refuseRedirects: true,
    })
    this.#access = new AccessToken(link, () => this.#issueToken())
  }

  bot = async () => (await this.#call('/bot/v3/info', {}, Bot, 'the bot')).bot

  /** The address of a long connection, which can be used once, and the pause between signs of life in seconds. */
  async endpoint() {
    const { app_id: AppID, token: AppSecret } = this.#link.config
    const request = { json: { AppID, AppSecret }, headers: { locale: 'en' } }
    const url = `${this.#base}/callback/ws/endpoint`
    const { data } = await this.#client.json(url, request, Endpoint, 'the address of the long connection')
    return { url: data.URL, pingSecs: data.ClientConfig?.PingInterval ?? undefined }
  }

  send(message: OutboundMessage): Promise<SentMessage> {
    const { text, buttons = [], attachments } = message
    const card = text !== '' || buttons.length > 0
    const contents: (() => Promise<Content> | Content)[] = [
      ...(card ? [() => ({ type: 'interactive' as const, content: encodeCard(message) })] : []),
      ...attachments.map((file) => () => this.#upload(file)),
    ]
    const steps = contents.map((content, index) => async () => this.#post(message, await content(), index))
    return this.#partial.send(message.id, steps)
  }

  async edit(id: string, message: OutboundMessage): Promise<void> {
    const request = { method: 'PATCH', json: { content: encodeCard(message) } }
    await this.#call(messagePath(id), request, Done, 'the edited message')
  }

  async delete(id: string): Promise<void> {
    await ignoreMissing(this.#call(messagePath(id), { method: 'DELETE' }, Done, 'the removed message'))
  }

  /** The id of the reaction. */
  async react(messageId: string, emoji: string): Promise<string> {
    const request = { json: { reaction_type: { emoji_type: reactionName(emoji) } } }
    const { data } = await this.#call(`${messagePath(messageId)}/reactions`, request, Reaction, 'the reaction')
    return data.reaction_id
  }

  async removeReaction(messageId: string, reactionId: string): Promise<void> {
    const path = `${messagePath(messageId)}/reactions/${encodeURIComponent(reactionId)}`
    await this.#call(path, { method: 'DELETE' }, Done, 'the removed reaction')
  }

  chat = async (id: string) => (await this.#call(`/im/v1/chats/${encodeURIComponent(id)}`, {}, Chat, 'a chat')).data

  async userName(id: string): Promise<string | undefined> {
    const path = `/contact/v3/users/${encodeURIComponent(id)}?user_id_type=open_id`
    return (await this.#call(path, {}, User, 'a user')).data.user.name || undefined
  }

  async readResource({ message, key, type }: Resource, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const path = `${messagePath(message)}/resources/${encodeURIComponent(key)}?type=${type}`
    const request = { signal, headers: { accept: '*/*' }, streamIdleMs: STREAM_IDLE_MS }
    const response = await this.#access.use((token) => this.#client.open(this.#url(path), authorized(request, token)))
    return response.chunks()
  }

  /** An answer to a message that is gone is a message of its own. */
  async #post(message: OutboundMessage, content: Content, index: number): Promise<SentMessage> {
    const { to, replyTo, id } = message
    const uuid = `${id}-${index}`
    if (replyTo !== undefined && to.threadId === undefined) {
      try {
        const request = { json: encodeReply(content, uuid) }
        const { data } = await this.#call(`${messagePath(replyTo)}/reply`, request, Sent, 'the sent reply')
        return { id: data.message_id }
      } catch (error) {
        if (!(error instanceof UpstreamFailure) || error.reason !== 'not_found') throw error
      }
    }
    const type = to.threadId === undefined ? 'chat_id' : 'thread_id'
    const request = { json: encodeMessage(to, content, uuid) }
    const { data } = await this.#call(`/im/v1/messages?receive_id_type=${type}`, request, Sent, 'the sent message')
    return { id: data.message_id }
  }

  async #upload(file: OutboundAttachment): Promise<Content> {
    const form = new FormData()
    const blob = new Blob([new Uint8Array(await file.bytes())], { type: file.mime })
    if (IMAGE.test(file.mime) && file.size <= MAX_IMAGE_BYTES) {
      form.set('image_type', 'message')
      form.set('image', blob, file.name)
      const request = { form, timeoutMs: UPLOAD_TIMEOUT_MS }
      const { data } = await this.#call('/im/v1/images', request, Image, 'the uploaded picture')
      return { type: 'image', content: JSON.stringify({ image_key: data.image_key }) }
    }
    form.set('file_type', 'stream')
    form.set('file_name', file.name)
    form.set('file', blob, file.name)
    const request = { form, timeoutMs: UPLOAD_TIMEOUT_MS }
    const { data } = await this.#call('/im/v1/files', request, File, 'the uploaded file')
    return { type: 'file', content: JSON.stringify({ file_key: data.file_key }) }
  }

  async #issueToken() {
    const { app_id, token: app_secret } = this.#link.config
    const url = this.#url('/auth/v3/tenant_access_token/internal')
    const { tenant_access_token: token, expire } = await this.#client.json(
      url,
      { json: { app_id, app_secret } },
      Token,
      'the access token',
    )
    return { token, lifetimeSecs: expire }
  }

  #call<S extends v.GenericSchema>(
    path: string,
    request: ApiRequest,
    schema: S,
    what: string,
  ): Promise<v.InferOutput<S>> {
    return this.#access.use((token) => this.#client.json(this.#url(path), authorized(request, token), schema, what))
  }

  #url(path: string): string {
    return `${this.#base}/open-apis${path}`
  }
}

function messagePath(id: string): string {
  return `/im/v1/messages/${encodeURIComponent(id)}`
}

function authorized(request: ApiRequest, token: string): ApiRequest {
  return { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } }
}
