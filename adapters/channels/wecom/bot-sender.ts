import { createHash } from 'node:crypto'
import { UpstreamFailure } from 'svc/sdk'
import { PartialSends } from 'svc/channels'
import type { OutboundAttachment, OutboundMessage, SentMessage } from 'svc/channels'
import { personOf } from './address.ts'
import type { BotSocket } from './bot-socket.ts'
import { encodeMarkdown, mediaType } from './encode.ts'
import { Uploaded, UploadStarted } from './wire.ts'

/** What a piece of a file may have. */
const CHUNK_BYTES = 524_288

/** Sends messages of the robot, over the long connection. WeCom does not tell their ids. */
export class BotSender {
  readonly #socket: BotSocket
  readonly #partial = new PartialSends()

  constructor(socket: BotSocket) {
    this.#socket = socket
  }

  send(message: OutboundMessage): Promise<SentMessage> {
    const { text, attachments } = message
    const steps = [
      ...(text === '' ? [] : [() => this.#answer(message)]),
      ...attachments.map((file) => () => this.#sendFile(message, file)),
    ]
    return this.#partial.send(message.id, steps)
  }

  /** An answer belongs to the request that brought the question. After a while, or the second time, it does not. */
  async #answer(message: OutboundMessage): Promise<SentMessage> {
    const { id, to, text } = message
    const { content } = encodeMarkdown(text)
    const reqId = to.replyContext?.['reqId']
    if (typeof reqId === 'string') {
      try {
        const body = { msgtype: 'stream', stream: { id, finish: true, content } }
        await this.#socket.request('aibot_respond_msg', body, reqId)
        return { id: '' }
      } catch (error) {
        if (!(error instanceof UpstreamFailure) || error.retry === 'later') throw error
      }
    }
    return this.#push(message, { msgtype: 'markdown', markdown: { content } })
  }

  async #sendFile(message: OutboundMessage, file: OutboundAttachment): Promise<SentMessage> {
    const type = mediaType(file)
    const id = await this.#upload(type, file.name, await file.bytes())
    return this.#push(message, { msgtype: type, [type]: { media_id: id } })
  }

  async #push({ to }: OutboundMessage, content: object): Promise<SentMessage> {
    const person = personOf(to.chatId)
    const place = person === undefined ? { chatid: to.chatId, chat_type: 2 } : { chatid: person, chat_type: 1 }
    await this.#socket.request('aibot_send_msg', { ...place, ...content })
    return { id: '' }
  }

  async #upload(type: string, filename: string, bytes: Uint8Array): Promise<string> {
    const chunks = Math.max(1, Math.ceil(bytes.length / CHUNK_BYTES))
    const about = { total_size: bytes.length, total_chunks: chunks, md5: createHash('md5').update(bytes).digest('hex') }
    const file = { type, filename, ...about }
    const { upload_id } = await this.#socket.ask('aibot_upload_media_init', file, UploadStarted)
    for (let index = 0; index < chunks; index++) {
      const piece = bytes.subarray(index * CHUNK_BYTES, (index + 1) * CHUNK_BYTES)
      const body = { upload_id, chunk_index: index, base64_data: Buffer.from(piece).toString('base64') }
      await this.#socket.request('aibot_upload_media_chunk', body)
    }
    return (await this.#socket.ask('aibot_upload_media_finish', { upload_id }, Uploaded)).media_id
  }
}
