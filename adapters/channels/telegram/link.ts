import { UpstreamFailure } from 'svc/sdk'
import { PartialSends } from 'svc/channels'
import type { ChannelConnection, Destination, JsonObject, OutboundMessage, SentMessage } from 'svc/channels'
import { BotApi, ChatMigrated } from './api.ts'
import type { Link } from './api.ts'
import { messageId } from './decode.ts'
import type { Bot } from './decode.ts'
import {
  encodeButtons,
  encodeDestination,
  encodeFile,
  encodePlainText,
  encodeReply,
  encodeText,
  fitsCaption,
  localId,
  methodFor,
} from './encode.ts'
import { MigratedChats } from './migrated-chats.ts'
import { startPolling } from './poll.ts'
import { receiveRequest, startWebhook } from './webhook.ts'
import { Done, FilePath, Me, Sent } from './wire.ts'

export async function openTelegram(link: Link): Promise<ChannelConnection> {
  const api = new BotApi(link)
  const bot = await identify(api)
  const { webhook_url: url } = link.config
  const chats = new MigratedChats(link.state)
  const receiver = { link, api, bot, chats }
  const background = await (url === undefined ? startPolling(receiver) : startWebhook(link, api, url))
  const sender = new Sender(api, chats)
  return {
    closed: background.closed,
    send: (message) => sender.send(message),
    edit: (sent, message) => sender.edit(sent, message),
    delete: (sent) => sender.delete(sent),
    typing: (to) => sender.typing(to),
    react: (to, id, emoji) => sender.react(to, id, emoji),
    readAttachment: (reference, signal) => readFile(api, reference, signal),
    webhook: (request) => receiveRequest(receiver, request),
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  }
}

export async function probeTelegram(link: Link): Promise<{ readonly account: string }> {
  const { username } = await identify(new BotApi(link))
  return { account: `@${username}` }
}

async function identify(api: BotApi): Promise<Bot> {
  const { result } = await api.call('getMe', {}, Me)
  return { id: result.id, username: result.username ?? '' }
}

async function readFile(api: BotApi, reference: JsonObject, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
  const { file_id } = reference
  const { result } = await api.call('getFile', { json: { file_id }, signal }, FilePath)
  return (await api.download(result.file_path, signal)).chunks()
}

/** Sends, edits and shows messages. */
class Sender {
  readonly #api: BotApi
  readonly #chats: MigratedChats
  readonly #partial = new PartialSends()

  constructor(api: BotApi, chats: MigratedChats) {
    this.#api = api
    this.#chats = chats
  }

  async send(message: OutboundMessage): Promise<SentMessage> {
    const to = await this.#present(message.to)
    try {
      return await this.#sendTo({ ...message, to })
    } catch (error) {
      if (!(error instanceof ChatMigrated)) throw error
      // Telegram refused the message, so it is sent for the first time now.
      await this.#chats.note(to.chatId, error.chatId)
      return this.#sendTo({ ...message, to: { ...to, chatId: error.chatId } })
    }
  }

  #sendTo(message: OutboundMessage): Promise<SentMessage> {
    const { attachments, text } = message
    const isCaption = fitsCaption(message)
    const steps = attachments.map((_, index) => () => this.#sendFile(message, index, isCaption))
    if (!isCaption && (text !== '' || attachments.length === 0)) steps.unshift(() => this.#sendText(message))
    return this.#partial.send(message.id, steps)
  }

  #sendText(message: OutboundMessage): Promise<SentMessage> {
    const rest = { ...encodeDestination(message.to), ...encodeReply(message), ...encodeButtons(message) }
    return plainOnParseError(
      () => this.#post('sendMessage', { json: { ...rest, ...encodeText(message) } }),
      () => this.#post('sendMessage', { json: { ...rest, ...encodePlainText(message) } }),
    )
  }

  async #sendFile(message: OutboundMessage, index: number, isCaption: boolean): Promise<SentMessage> {
    const attachment = message.attachments[index]
    if (!attachment) throw new RangeError(`There is no attachment ${index}`)
    const [method, field] = methodFor(attachment)
    const rest = {
      ...encodeDestination(message.to),
      ...encodeReply(message),
      ...(isCaption && encodeButtons(message)),
    }
    const post = async (caption: Readonly<Record<string, string>>): Promise<SentMessage> =>
      this.#post(method, { form: await encodeFile(attachment, field, { ...rest, ...caption }) })
    if (!isCaption || message.text === '') return post({})
    return plainOnParseError(
      () => post({ caption: message.text, parse_mode: 'HTML' }),
      () => post({ caption: message.plainText }),
    )
  }

  async #post(method: string, request: { readonly json?: unknown; readonly form?: FormData }): Promise<SentMessage> {
    const timeoutMs = request.form ? 120_000 : 30_000
    const { result } = await this.#api.call(method, { ...request, timeoutMs }, Sent)
    return { id: messageId(result.chat.id, result.message_id) }
  }

  async edit(sent: SentMessage, message: OutboundMessage): Promise<void> {
    const [chat_id, message_id] = sent.id.split(':')
    const rest = { chat_id, message_id: Number(message_id), ...encodeButtons(message) }
    try {
      await plainOnParseError(
        () => this.#api.call('editMessageText', { json: { ...rest, ...encodeText(message) } }, Done),
        () => this.#api.call('editMessageText', { json: { ...rest, ...encodePlainText(message) } }, Done),
      )
    } catch (error) {
      if (!hasText(error, 'message is not modified')) throw error
    }
  }

  async delete(sent: SentMessage): Promise<void> {
    const [chat_id, message_id] = sent.id.split(':')
    try {
      await this.#api.call('deleteMessage', { json: { chat_id, message_id: Number(message_id) } }, Done)
    } catch (error) {
      if (!hasText(error, 'message to delete not found')) throw error
    }
  }

  async typing(to: Destination): Promise<void> {
    const json = { ...encodeDestination(await this.#present(to)), action: 'typing' }
    await this.#api.call('sendChatAction', { json }, Done)
  }

  async react(to: Destination, id: string, emoji: string): Promise<void> {
    const { chatId } = await this.#present(to)
    const json = { chat_id: chatId, message_id: localId(id), reaction: [{ type: 'emoji', emoji }] }
    await this.#api.call('setMessageReaction', { json }, Done)
  }

  /** The destination with the id that the chat has now. */
  async #present(to: Destination): Promise<Destination> {
    return { ...to, chatId: await this.#chats.presentId(to.chatId) }
  }
}

/** Sends the plain text when Telegram cannot parse the markup. It refused the first attempt, so one message appears. */
async function plainOnParseError<T>(send: () => Promise<T>, sendPlain: () => Promise<T>): Promise<T> {
  try {
    return await send()
  } catch (error) {
    if (!hasText(error, "can't parse entities")) throw error
    return sendPlain()
  }
}

function hasText(error: unknown, text: string): boolean {
  return error instanceof UpstreamFailure && error.message.toLowerCase().includes(text)
}
