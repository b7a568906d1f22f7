import { PartialSends } from 'svc/channels'
import type { Destination, OutboundAttachment, OutboundMessage, SentMessage } from 'svc/channels'
import type { CloudApi } from './cloud-api.ts'
import {
  encodeButtons,
  encodeMedia,
  encodeReaction,
  encodeText,
  encodeTyping,
  fitsButtons,
  fitsCaption,
} from './encode.ts'
import { Done, Sent, Uploaded } from './wire.ts'

/** Sends messages over the Cloud API. */
export class CloudSender {
  readonly #api: CloudApi
  readonly #partial = new PartialSends()

  constructor(api: CloudApi) {
    this.#api = api
  }

  send(message: OutboundMessage): Promise<SentMessage> {
    const { attachments, buttons = [], text } = message
    const isCaption = fitsCaption(message)
    const hasButtons = buttons.length > 0
    const steps: (() => Promise<SentMessage>)[] = []
    if (text !== '' && !isCaption && !(hasButtons && fitsButtons(message)))
      steps.push(() => this.#post(encodeText(message)))
    for (const attachment of attachments) steps.push(() => this.#sendFile(message, attachment, isCaption ? text : ''))
    if (hasButtons) steps.push(() => this.#post(encodeButtons(message)))
    return this.#partial.send(message.id, steps)
  }

  async typing({ replyContext }: Destination): Promise<void> {
    const messageId = replyContext?.['messageId']
    if (typeof messageId === 'string')
      await this.#api.call(this.#api.phonePath('/messages'), { json: encodeTyping(messageId) }, Done)
  }

  async react({ chatId }: Destination, messageId: string, emoji: string): Promise<void> {
    await this.#post(encodeReaction(chatId, messageId, emoji))
  }

  async #sendFile(message: OutboundMessage, attachment: OutboundAttachment, caption: string): Promise<SentMessage> {
    const form = new FormData()
    form.set('messaging_product', 'whatsapp')
    const bytes = new Uint8Array(await attachment.bytes())
    form.set('file', new Blob([bytes], { type: attachment.mime }), attachment.name)
    const { id } = await this.#api.call(this.#api.phonePath('/media'), { form, timeoutMs: 120_000 }, Uploaded)
    return this.#post(encodeMedia(message, attachment, id, caption))
  }

  async #post(json: unknown): Promise<SentMessage> {
    const { messages } = await this.#api.call(this.#api.phonePath('/messages'), { json }, Sent)
    return { id: messages[0].id }
  }
}
