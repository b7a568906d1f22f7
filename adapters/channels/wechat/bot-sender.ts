import { omitUndefined } from 'svc/sdk'
import { PartialSends, RecentMap } from 'svc/channels'
import type { ChannelLink, Destination, OutboundAttachment, OutboundMessage, SentMessage } from 'svc/channels'
import type { BotApi } from './bot-api.ts'
import type { BotContexts } from './bot-contexts.ts'
import type { BotMedia, UploadedMedia, UploadKind } from './bot-media.ts'
import { BOT_MESSAGE, FINISHED, ITEM } from './bot-wire.ts'
import type { WeChatConfig } from './config.ts'

const MAX_UPLOADED = 100
const MAX_TICKETS = 200
const TICKET_MS = 12 * 3_600_000

export interface BotSenderDeps {
  readonly link: Pick<ChannelLink<WeChatConfig>, 'now'>
  readonly api: BotApi
  readonly contexts: BotContexts
  readonly media: BotMedia
}

/** Sends messages of a bot: one item each, as the client of Tencent does. */
export class BotSender {
  readonly #deps: BotSenderDeps
  readonly #partial = new PartialSends()
  readonly #uploaded = new RecentMap<string, UploadedMedia>(MAX_UPLOADED)
  readonly #tickets = new RecentMap<string, { readonly ticket: string; readonly at: number }>(MAX_TICKETS)

  constructor(deps: BotSenderDeps) {
    this.#deps = deps
  }

  send(message: OutboundMessage): Promise<SentMessage> {
    const { id, text, attachments, to } = message
    const steps = attachments.map((file, index) => async () => {
      const item = await this.#encodeFile(to.chatId, file, `${id}-${index}`)
      return this.#post(to.chatId, item, `${id}-${index}`)
    })
    if (text !== '') steps.unshift(() => this.#post(to.chatId, { type: ITEM.text, text_item: { text } }, id))
    return this.#partial.send(id, steps)
  }

  async typing({ chatId }: Destination): Promise<void> {
    const ticket = await this.#ticketOf(chatId)
    if (ticket !== '') await this.#deps.api.typing(chatId, ticket)
  }

  async #post(to: string, item: object, clientId: string): Promise<SentMessage> {
    const { api, contexts } = this.#deps
    await api.send(
      omitUndefined({
        from_user_id: '',
        to_user_id: to,
        client_id: clientId,
        message_type: BOT_MESSAGE,
        message_state: FINISHED,
        context_token: await contexts.of(to),
        item_list: [item],
      }),
    )
    return { id: clientId }
  }

  async #encodeFile(to: string, file: OutboundAttachment, attempt: string): Promise<object> {
    const kind: UploadKind = file.kind === 'image' || file.kind === 'video' ? file.kind : 'file'
    const uploaded = this.#uploaded.get(attempt) ?? (await this.#deps.media.upload(to, file, kind))
    this.#uploaded.set(attempt, uploaded)
    const { param, key, size, encryptedSize } = uploaded
    // The digits of the key are encoded, and not its bytes.
    const media = { encrypt_query_param: param, aes_key: Buffer.from(key).toString('base64'), encrypt_type: 1 }
    if (kind === 'image') return { type: ITEM.image, image_item: { media, mid_size: encryptedSize } }
    if (kind === 'video') return { type: ITEM.video, video_item: { media, video_size: encryptedSize } }
    return { type: ITEM.file, file_item: { media, file_name: file.name, len: String(size) } }
  }

  async #ticketOf(person: string): Promise<string> {
    const { link, api, contexts } = this.#deps
    const known = this.#tickets.get(person)
    if (known && link.now() - known.at < TICKET_MS) return known.ticket
    const { typing_ticket: ticket } = await api.config(person, await contexts.of(person))
    this.#tickets.set(person, { ticket, at: link.now() })
    return ticket
  }
}
