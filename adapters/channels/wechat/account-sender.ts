import { UpstreamFailure } from 'svc/sdk'
import { PartialSends } from 'svc/channels'
import type { OutboundAttachment, OutboundMessage, SentMessage } from 'svc/channels'
import type { AccountApi } from './account-api.ts'

/** Sends messages of an official account, within 48 hours after one of the person. */
export class AccountSender {
  readonly #api: AccountApi
  readonly #partial = new PartialSends()

  constructor(api: AccountApi) {
    this.#api = api
  }

  async send({ id, to, text, attachments }: OutboundMessage): Promise<SentMessage> {
    for (const file of attachments) checkKind(file)
    const steps = attachments.map((file) => async () => {
      const media = await this.#upload(file)
      return this.#post({ touser: to.chatId, msgtype: 'image', image: { media_id: media } })
    })
    if (text !== '') steps.unshift(() => this.#post({ touser: to.chatId, msgtype: 'text', text: { content: text } }))
    return this.#partial.send(id, steps)
  }

  /** WeChat tells no id of a message. */
  async #post(message: object): Promise<SentMessage> {
    await this.#api.send(message)
    return { id: '' }
  }

  async #upload(file: OutboundAttachment): Promise<string> {
    const form = new FormData()
    form.set('media', new Blob([new Uint8Array(await file.bytes())], { type: file.mime }), file.name)
    return this.#api.upload('image', form)
  }
}

function checkKind({ mime, name }: OutboundAttachment): void {
  if (/^image\/(?:png|jpe?g|gif|bmp)$/.test(mime)) return
  throw new UpstreamFailure('wechat', `wechat: an official account cannot send the file ${name.slice(0, 100)}`, {
    reason: 'invalid_request',
    retry: 'never',
  })
}
