import type * as v from 'valibot'
import { AccessToken, ApiClient, ignoreMissing, PartialSends, RecentMap, trimSlashes } from 'svc/channels'
import type {
  ApiRequest,
  ChannelLink,
  Destination,
  OutboundAttachment,
  OutboundMessage,
  SentMessage,
} from 'svc/channels'
import { chatOf } from './chat.ts'
import type { Chat } from './chat.ts'
import type { QqConfig } from './config.ts'
import {
  encodeContent,
  encodeMedia,
  encodePicture,
  encodeText,
  encodeTyping,
  encodeUpload,
  isPicture,
  nextSeq,
  seqOf,
} from './encode.ts'
import type { Answered } from './encode.ts'
import { findError, isDuplicate } from './errors.ts'
import { Gateway, Sent, Token, Upload, User } from './wire.ts'

/** QQ gives another token only in the last minute of the present one, which holds until its end. */
const RENEW_EARLY_MS = 50_000
const UPLOAD_TIMEOUT_MS = 120_000
/** How long an indicator is shown. */
const TYPING_SECS = 60
/** Numbers that are tried for one reply: at most five replies to a message are taken. */
const MAX_SEQS = 5
const MAX_SENT = 1000

type Encode = (answered: Answered | undefined) => Promise<ApiRequest>

/** The requests of one bot. */
export class QqApi {
  readonly #link: ChannelLink<QqConfig>
  readonly #client: ApiClient
  readonly #files: ApiClient
  readonly #access: AccessToken
  /** Texts that must not appear in failures: the secret, and the present token. */
  readonly #secrets: [secret: string, token: string]
  readonly #base: string
  readonly #partial = new PartialSends()
  /** Ids of the replies that were sent: QQ tells none when it refuses a reply that it has. */
  readonly #sent = new RecentMap<string, SentMessage>(MAX_SENT)

  constructor(link: ChannelLink<QqConfig>) {
    this.#link = link
    this.#base = trimSlashes(link.config.base_url)
    this.#secrets = [link.config.token, '']
    this.#client = new ApiClient(link, { system: 'qq', findError, secrets: this.#secrets, refuseRedirects: true })
    this.#access = new AccessToken(link, () => this.#issueToken(), RENEW_EARLY_MS)
    // Addresses of files need no token, which must not go to another host.
    this.#files = new ApiClient(link, { system: 'qq' })
  }

  me = () => this.#call('/users/@me', {}, User, 'the bot')

  token = () => this.#access.get()

  gateway = () => this.#call('/gateway', {}, Gateway, 'the address of the gateway')

  send(message: OutboundMessage): Promise<SentMessage> {
    const chat = chatOf(message.to.chatId)
    const { attachments, text } = message
    const [first] = attachments
    const isCaption = text !== '' && first !== undefined && (chat.isOfServer || isPicture(first))
    const steps = attachments.map(
      (file, index) => () =>
        this.#post(chat, message, index + 1, this.#file(chat, file, index === 0 && isCaption ? text : '')),
    )
    if (!isCaption && (text !== '' || attachments.length === 0))
      steps.unshift(() =>
        this.#post(chat, message, 0, async (answered) => ({ json: encodeText(chat, text, answered) })),
      )
    return this.#partial.send(message.id, steps)
  }

  async delete({ id }: SentMessage, to: Destination): Promise<void> {
    const { path, isOfServer } = chatOf(to.chatId)
    const url = `${path}/messages/${encodeURIComponent(id)}${isOfServer ? '?hidetip=true' : ''}`
    await ignoreMissing(this.#open(url, { method: 'DELETE' }))
  }

  /** Only people in private chats see it, as an answer to what they wrote. */
  async typing(to: Destination): Promise<void> {
    const chat = chatOf(to.chatId)
    const id = answeredId(to)
    if (chat.kind !== 'user' || id === undefined) return
    const json = encodeTyping(TYPING_SECS, { id, seq: seqOf(`typing ${this.#link.now()}`) })
    await this.#open(`${chat.path}/messages`, { json })
  }

  async readFile(url: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    return (await this.#files.open(url, { signal, headers: { accept: '*/*' } })).chunks()
  }

  #file(chat: Chat, file: OutboundAttachment, text: string): Encode {
    if (chat.isOfServer)
      return async (answered) => ({
        form: await encodePicture(chat, text, file, answered),
        timeoutMs: UPLOAD_TIMEOUT_MS,
      })
    return async (answered) => {
      const request = { json: await encodeUpload(file), timeoutMs: UPLOAD_TIMEOUT_MS }
      const { file_info: info } = await this.#call(`${chat.path}/files`, request, Upload, 'the uploaded file')
      return { json: encodeMedia(encodeContent(chat, text), info, answered) }
    }
  }

  /** Sends one part of a message. A reply that QQ has already, from an attempt whose answer was lost, is a success. */
  async #post(chat: Chat, message: OutboundMessage, part: number, encode: Encode): Promise<SentMessage> {
    const key = `${message.id} ${part}`
    const id = answeredId(message.to)
    let seq = seqOf(key)
    let refused: unknown
    for (let attempt = 0; attempt < MAX_SEQS; attempt++) {
      try {
        const request = await encode(id === undefined ? undefined : { id, seq })
        const sent = await this.#call(`${chat.path}/messages`, request, Sent, 'the sent message')
        const result = { id: 'id' in sent ? sent.id : '' }
        this.#sent.set(key, result)
        return result
      } catch (error) {
        if (!isDuplicate(error)) throw error
        const earlier = this.#sent.get(key)
        if (earlier || message.mayBeSent) return { id: earlier?.id ?? '', wasSentBefore: true }
        // The number belongs to another reply to the same message.
        refused = error
        seq = nextSeq(seq)
      }
    }
    throw refused
  }

  #call<S extends v.GenericSchema>(
    path: string,
    request: ApiRequest,
    schema: S,
    what: string,
  ): Promise<v.InferOutput<S>> {
    return this.#access.use((token) =>
      this.#client.json(this.#base + path, { ...request, headers: this.#headers(token) }, schema, what),
    )
  }
  #open(path: string, request: ApiRequest) {
    return this.#access.use((token) =>
      this.#client.open(this.#base + path, { ...request, headers: this.#headers(token) }),
    )
  }

  #headers(token: string) {
    return { authorization: `QQBot ${token}`, 'x-union-appid': this.#link.config.app_id }
  }

  async #issueToken() {
    const { app_id: appId, token: clientSecret, token_url: url } = this.#link.config
    const answer = await this.#client.json(url, { json: { appId, clientSecret } }, Token, 'an access token')
    this.#secrets[1] = answer.access_token
    return { token: answer.access_token, lifetimeSecs: answer.expires_in }
  }
}

function answeredId({ replyContext }: Destination): string | undefined {
  const id = replyContext?.['message']
  return typeof id === 'string' ? id : undefined
}
