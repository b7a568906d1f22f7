import * as v from 'valibot'
import { answerGraphRequest, NameCache } from 'svc/channels'
import type { ChannelLink, WebhookAnswer, WebhookRequest } from 'svc/channels'
import type { MessengerApi } from './api.ts'
import type { MessengerConfig } from './config.ts'
import { decodeEvent } from './decode.ts'
import { Event, Notification } from './wire.ts'

/** Longer than Meta sends an event again. */
const MAX_AGE_MS = 172_800_000

/** Passes on what people write to one page. */
export class MessengerWebhook {
  readonly #link: ChannelLink<MessengerConfig>
  readonly #api: MessengerApi
  readonly #pageId: string
  readonly #names: NameCache

  constructor(link: ChannelLink<MessengerConfig>, api: MessengerApi, pageId: string) {
    this.#link = link
    this.#api = api
    this.#pageId = pageId
    this.#names = new NameCache(link, 'messenger')
  }

  answer(request: WebhookRequest): Promise<WebhookAnswer> {
    const { verify_token: verifyToken, app_secret: appSecret } = this.#link.config
    return answerGraphRequest(request, { verifyToken, appSecret }, async (notification) => {
      const parsed = v.safeParse(Notification, notification)
      if (!parsed.success) return
      for (const { id, messaging } of parsed.output.entry)
        // One app may serve several pages, each of which is an account here.
        if (id === this.#pageId) for (const raw of messaging ?? []) await this.#receive(raw)
    })
  }

  async #receive(raw: unknown): Promise<void> {
    const { log } = this.#link
    const event = v.safeParse(Event, raw)
    if (!event.success) return log.warn('messenger: an event in an unknown form was left out')
    const message = decodeEvent(event.output, this.#pageId)
    if (!message) return
    if (this.#link.now() - event.output.timestamp > MAX_AGE_MS)
      return log.warn('messenger: an event of more than two days ago was left out')
    const { sender } = message
    const name = await this.#names.find(sender.id, () => this.#api.userName(sender.id))
    await this.#link.receive({ ...message, sender: { ...sender, name } })
  }
}
