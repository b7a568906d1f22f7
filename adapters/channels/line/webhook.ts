import * as v from 'valibot'
import { omitUndefined } from 'svc/sdk'
import { NameCache, readWebhookBody, verifySignature } from 'svc/channels'
import type { ChannelLink, InboundMessage, WebhookAnswer, WebhookRequest } from 'svc/channels'
import type { LineApi } from './api.ts'
import type { LineConfig } from './config.ts'
import { decodeEvent } from './decode.ts'
import type { LineSender } from './sender.ts'
import { Callback, Event } from './wire.ts'

/** Events have no other protection against being repeated than their time; LINE gives up sooner. */
const MAX_AGE_MS = 86_400_000

/** Passes on the events that LINE sends. */
export class LineWebhook {
  readonly #link: ChannelLink<LineConfig>
  readonly #api: LineApi
  readonly #sender: LineSender
  readonly #botId: string
  readonly #names: NameCache

  constructor(link: ChannelLink<LineConfig>, api: LineApi, sender: LineSender, botId: string) {
    this.#link = link
    this.#api = api
    this.#sender = sender
    this.#botId = botId
    this.#names = new NameCache(link, 'line')
  }

  async answer(request: WebhookRequest): Promise<WebhookAnswer> {
    if (request.method !== 'POST') return { status: 405, headers: { allow: 'POST' } }
    const { channel_secret: secret } = this.#link.config
    verifySignature(request.body, request.header('x-line-signature'), { secret, encoding: 'base64' })
    const callback = v.safeParse(Callback, readWebhookBody(request))
    if (callback.success && callback.output.destination === this.#botId)
      for (const raw of callback.output.events) await this.#receive(raw)
    return { status: 200 }
  }

  async #receive(raw: unknown): Promise<void> {
    const { log } = this.#link
    const event = v.safeParse(Event, raw)
    if (!event.success) return log.warn('LINE sent an event in a form that cannot be read')
    const { mode, timestamp } = event.output
    if (mode === 'standby') return
    const now = this.#link.now()
    if (now - timestamp > MAX_AGE_MS) return log.warn('LINE sent an event of more than a day ago: it was left out')
    const message = decodeEvent(event.output, { now, isOwn: (id) => this.#sender.isOwn(id) })
    if (message) await this.#link.receive(await this.#named(message, event.output))
  }

  async #named(message: InboundMessage, { source }: Event): Promise<InboundMessage> {
    const { chat, sender } = message
    const groupId = source?.groupId
    const [name, title] = await Promise.all([
      source?.userId == null ? sender.name : this.#names.find(sender.id, () => this.#api.userName(source)),
      groupId == null ? undefined : this.#names.find(groupId, () => this.#api.groupName(groupId)),
    ])
    return { ...message, chat: omitUndefined({ ...chat, title }), sender: { ...sender, name } }
  }
}
