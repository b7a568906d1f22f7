import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { PartialSends, RecentMap } from 'svc/channels'
import type { OutboundAttachment, OutboundMessage, SentMessage } from 'svc/channels'
import type { ThreemaApi } from './api.ts'
import { sealFile } from './box.ts'
import type { BoxKey } from './box.ts'
import { encodeFile, encodeText, fitsCaption } from './encode.ts'
import type { UploadedFile } from './encode.ts'
import { ThreemaId } from './wire.ts'
import type { Content } from './wire.ts'

const MAX_UPLOADED = 100

/** Sends messages of one id. */
export class ThreemaSender {
  readonly #api: ThreemaApi
  readonly #key: BoxKey
  readonly #partial = new PartialSends()
  /** Files whose message was not taken: another attempt has to send the same. */
  readonly #uploaded = new RecentMap<string, UploadedFile>(MAX_UPLOADED)

  constructor(api: ThreemaApi, key: BoxKey) {
    this.#api = api
    this.#key = key
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    const { id, to, text, attachments, replyTo } = message
    if (!v.is(ThreemaId, to.chatId))
      throw new UpstreamFailure('threema', 'threema: a chat is an id of eight letters and digits', {
        reason: 'invalid_request',
        retry: 'never',
      })
    const isCaption = text !== '' && fitsCaption(text, attachments)
    const steps = attachments.map((file, index) => async () => {
      const uploaded = await this.#upload(`${id} ${index}`, file)
      return this.#post(to.chatId, encodeFile(file, uploaded, isCaption ? text : ''), `${id} ${index}`)
    })
    if (text !== '' && !isCaption) steps.unshift(() => this.#post(to.chatId, encodeText(text, replyTo), id))
    return this.#partial.send(id, steps)
  }

  async #post(to: string, content: Content, attempt: string): Promise<SentMessage> {
    const reader = await this.#api.publicKey(to)
    return { id: await this.#api.send(to, this.#key.seal(content, reader, attempt)) }
  }

  async #upload(attempt: string, file: OutboundAttachment): Promise<UploadedFile> {
    const known = this.#uploaded.get(attempt)
    if (known) return known
    const bytes = new Uint8Array(await file.bytes())
    const { key, sealed } = sealFile(bytes)
    const uploaded = { blob: await this.#api.upload(sealed), key, size: bytes.length }
    this.#uploaded.set(attempt, uploaded)
    return uploaded
  }
}
