import type { ServerResponse } from 'node:http'
import { allFaults, Revocation } from './faults.ts'
import { resetConnection, Shown, startPlatformServer } from './http.ts'
import type { PlatformAnswer, PlatformCall, PlatformServer } from './http.ts'
import { parseTelegramHtml } from './telegram-html.ts'
import type {
  FakePlatform,
  PlatformFault,
  PlatformFile,
  PlatformInput,
  PlatformRequest,
  WebhookTarget,
} from './platform.ts'

const TOKEN = '4839574812:AAFD39kkdpWt3ywyRZergyOLMaJhac60qcK'
const SECRET = 'webhook_secret-of-the-fake'
const BOT = { id: 4839574812, is_bot: true, first_name: 'Svc', username: 'svc_test_bot' }
const PERSON = { id: 1111, is_bot: false, first_name: 'Ada', last_name: 'L.', username: 'ada' }
const DIRECT = { id: 1111, type: 'private', first_name: 'Ada', username: 'ada' }
const GROUP = { id: -1001234, type: 'supergroup', title: 'Team', is_forum: true }
const ok = (result: unknown): PlatformAnswer => ({ status: 200, body: { ok: true, result } })
const refuse = (code: number, description: string, parameters?: object): PlatformAnswer => ({
  status: code,
  body: { ok: false, error_code: code, description, ...(parameters && { parameters }) },
})
const FORMATTED = new Set(['sendMessage', 'editMessageText'])
const FILES: Readonly<Record<string, readonly [field: string, kind: PlatformFile['kind']]>> = {
  sendPhoto: ['photo', 'image'],
  sendVideo: ['video', 'video'],
  sendAudio: ['audio', 'audio'],
  sendVoice: ['voice', 'audio'],
  sendDocument: ['document', 'file'],
}
type Parameters = Readonly<Record<string, unknown>>

export interface FakeTelegramOptions {
  readonly webhook?: boolean
}

/**
 * The Bot API: https://core.telegram.org/bots/api. Updates wait until a poll with a higher offset acknowledges them, or
 * the webhook answers with 200; a second poll ends the first with 409, as does a poll while a webhook is set.
 */
export class FakeTelegram implements FakePlatform {
  readonly channel = 'telegram'
  readonly secrets = [TOKEN, SECRET]
  readonly chats = { direct: '1111', group: '-1001234', thread: '77' }
  readonly person = '1111'
  readonly redelivers = true
  readonly revocation = new Revocation()
  readonly faults = allFaults
  readonly removes = true
  readonly answersInJson = true
  readonly typing: string[] = []
  readonly reactions: { messageId: string; emoji: string }[] = []
  readonly violations: string[] = []
  /** Methods that were called, in order. */
  readonly calls: string[] = []
  /** Groups that became supergroups: old id to new id. */
  readonly migrated = new Map<string, number>()
  readonly #shown = new Shown()
  readonly #files = new Map<string, PlatformFile>()
  readonly #texts = new Map<string, Parameters>()
  readonly #server: PlatformServer
  readonly #webhook: boolean
  #target: WebhookTarget | undefined
  #webhookUrl = ''
  #pending: { update_id: number }[] = []
  #nextUpdate = 500
  #nextMessage = 10
  #poll: { readonly response: ServerResponse; readonly answer: () => void } | undefined
  #listening = Promise.withResolvers<void>()
  #isNextPollReset = false
  readonly disconnect?: () => Promise<void>

  private constructor(server: PlatformServer, { webhook = false }: FakeTelegramOptions) {
    this.#server = server
    this.#webhook = webhook
    if (!webhook) this.disconnect = () => this.#disconnect()
  }

  static async start(options: FakeTelegramOptions = {}): Promise<FakeTelegram> {
    const held: { fake?: FakeTelegram } = {}
    const server = await startPlatformServer((call, response) => held.fake?.handle(call, response))
    held.fake = new FakeTelegram(server, options)
    return held.fake
  }

  get origin(): string {
    return this.#server.origin
  }
  get token(): string {
    return TOKEN
  }
  get config() {
    const webhook = { webhook_url: 'https://svc.example/api/channels/telegram/webhook', webhook_secret: SECRET }
    return { token: TOKEN, base_url: this.#server.origin, ...(this.#webhook && webhook) }
  }
  get wrongConfig() {
    return { ...this.config, token: '4839574812:AAHwrongwrongwrongwrongwrongwrongwro' }
  }
  get sent() {
    return this.#shown.sent
  }
  waitForSent(count: number) {
    return this.#shown.waitForSent(count)
  }
  fail(fault: PlatformFault): void {
    this.#shown.fail(fault)
  }
  setWebhook(target: WebhookTarget): void {
    this.#target = target
  }
  waitForListener(): Promise<void> {
    return this.#webhook ? Promise.resolve() : this.#listening.promise
  }
  async #disconnect(): Promise<void> {
    await this.#listening.promise
    this.#listening = Promise.withResolvers()
    if (this.#poll) resetConnection(this.#poll.response)
    else this.#isNextPollReset = true
    this.#poll = undefined
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]()
  }

  async deliver(input: PlatformInput): Promise<string> {
    const update = { update_id: this.#nextUpdate++, ...this.#updateOf(input) }
    const id = this.#idOf(update) ?? ''
    if (input.redeliveryOf === undefined) this.#texts.set(id, update)
    await this.deliverUpdate(update)
    return id
  }
  /** Delivers an update as it is. */
  async deliverUpdate(update: { readonly update_id: number }): Promise<void> {
    if (!this.#webhook) {
      this.#pending.push(update)
      this.#poll?.answer()
      return
    }
    const answer = await this.#target?.(this.#request(update, SECRET))
    if (answer?.status !== 200) throw new Error(`the webhook answered ${answer?.status}`)
  }
  forgeries(): readonly PlatformRequest[] {
    if (!this.#webhook) return []
    const update = { update_id: 1, ...this.#updateOf({ text: 'forged' }) }
    return [this.#request(update, undefined), this.#request(update, 'guess'), this.#request(update, '')]
  }

  #request(update: unknown, secret: string | undefined): PlatformRequest {
    return {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(secret !== undefined && { 'x-telegram-bot-api-secret-token': secret }),
      },
      body: Buffer.from(JSON.stringify(update)),
    }
  }

  #idOf(update: Parameters): string | undefined {
    const message = (update['message'] ?? update['edited_message']) as
      | { chat: { id: number }; message_id: number }
      | undefined
    if (message) return `${message.chat.id}:${message.message_id}`
    const press = update['callback_query'] as { id: string } | undefined
    return press && `press:${press.id}`
  }

  #updateOf(input: PlatformInput): Parameters {
    const earlier = input.redeliveryOf === undefined ? undefined : this.#texts.get(input.redeliveryOf)
    if (earlier) return { ...earlier, update_id: this.#nextUpdate++ }
    const chat = input.isGroup ? GROUP : DIRECT
    const from = input.isOwn ? BOT : PERSON
    if (input.button !== undefined)
      return {
        callback_query: { id: String(this.#nextMessage++), from, data: input.button, message: this.#bare(chat) },
      }
    const message = { ...this.#bare(chat), from, ...this.#content(input), ...this.#context(input) }
    if (input.editOf === undefined) return { message }
    return { edited_message: { ...message, message_id: Number(input.editOf.split(':')[1]), edit_date: 1_800_000_100 } }
  }
  #bare(chat: object) {
    return { message_id: this.#nextMessage++, date: 1_800_000_000, chat }
  }
  #content({ text, mentionsBot, files = [] }: PlatformInput) {
    const mention = `@${BOT.username}`
    const whole = mentionsBot ? `${mention} ${text}` : text
    const entities = mentionsBot ? [{ type: 'mention', offset: 0, length: mention.length }] : []
    const [file] = files
    if (!file) return { text: whole, entities }
    const file_id = `file-${this.#files.size}`
    this.#files.set(file_id, file)
    const about = { file_id, file_unique_id: file_id, file_size: file.bytes.length }
    const media =
      file.kind === 'image'
        ? {
            photo: [
              { ...about, file_id: 'thumbnail', width: 90, height: 90 },
              { ...about, width: 800, height: 800 },
            ],
          }
        : { document: { ...about, file_name: file.name, mime_type: file.mime } }
    return { ...media, caption: whole, caption_entities: entities }
  }
  #context({ threadId, replyTo }: PlatformInput) {
    return {
      ...(threadId !== undefined && { message_thread_id: Number(threadId), is_topic_message: true }),
      ...(replyTo !== undefined && {
        reply_to_message: { message_id: Number(replyTo.split(':')[1]), date: 1, chat: DIRECT, from: BOT, text: '…' },
      }),
    }
  }

  /** Answers one request. */
  async handle(call: PlatformCall, response: ServerResponse): Promise<PlatformAnswer | undefined> {
    const { pathname } = call.url
    if (pathname.startsWith('/file/')) return this.#download(pathname)
    const [, token, method = ''] = /^\/bot([^/]+)\/(\w+)$/.exec(pathname) ?? []
    if (token !== TOKEN || this.revocation.refuses())
      return token === undefined ? refuse(404, 'Not Found') : refuse(401, 'Unauthorized')
    this.calls.push(method)
    const parameters = await readParameters(call)
    if (method === 'getUpdates') return this.#getUpdates(parameters, response)
    if (FORMATTED.has(method) || FILES[method]) return this.#message(method, parameters, response)
    return this.#other(method, parameters)
  }

  #getUpdates({ offset = 0, timeout = 0, limit = 100 }: Parameters, response: ServerResponse) {
    if (this.#webhookUrl !== '')
      return refuse(
        409,
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete it",
      )
    if (Number(timeout) > 50) return this.#violation(`timeout ${String(timeout)}`)
    if (this.#isNextPollReset) {
      this.#isNextPollReset = false
      return resetConnection(response)
    }
    this.endPoll()
    this.#pending = this.#pending.filter(({ update_id }) => update_id >= Number(offset))
    this.#listening.resolve()
    const take = (): PlatformAnswer => ok(this.#pending.slice(0, Number(limit)))
    if (this.#pending.length > 0 || Number(timeout) === 0) return take()
    const timer = setTimeout(() => answer(), Number(timeout) * 1000)
    response.once('close', () => clearTimeout(timer))
    const answer = (): void => {
      this.#poll = undefined
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(take().body))
    }
    this.#poll = { response, answer }
    return undefined
  }
  /** Ends the poll that waits, as a second program that polls does. */
  endPoll(): void {
    const waiting = this.#poll
    this.#poll = undefined
    if (!waiting || waiting.response.destroyed) return
    const { status, body } = refuse(409, 'Conflict: terminated by other getUpdates request')
    waiting.response.writeHead(status, { 'content-type': 'application/json' })
    waiting.response.end(JSON.stringify(body))
  }

  #message(method: string, parameters: Parameters, response: ServerResponse): PlatformAnswer | undefined {
    const fault = this.#shown.takeFault()
    if (fault?.kind === 'rate_limit') {
      const seconds = fault.retryAfterSecs
      return refuse(429, 'Too Many Requests', seconds === undefined ? undefined : { retry_after: seconds })
    }
    if (fault?.kind === 'server_error') return refuse(502, 'Bad Gateway')
    if (fault?.kind === 'reset') return resetConnection(response)
    if (fault?.kind === 'permanent') return refuse(403, 'Forbidden: bot was blocked by the user')
    if (fault?.kind === 'auth') return refuse(401, 'Unauthorized')
    const migrated = this.migrated.get(String(parameters['chat_id']))
    if (migrated !== undefined)
      return refuse(400, 'Bad Request: group chat was upgraded to a supergroup chat', { migrate_to_chat_id: migrated })
    const answer = method === 'editMessageText' ? this.#edit(parameters) : this.#show(method, parameters)
    return fault?.kind === 'lost_answer' ? resetConnection(response) : answer
  }

  #show(method: string, parameters: Parameters): PlatformAnswer {
    const [field, kind] = FILES[method] ?? []
    const text = String(parameters[field === undefined ? 'text' : 'caption'] ?? '')
    const problem = checkText(text, parameters['parse_mode'], field === undefined ? 4096 : 1024)
    if (problem !== undefined) return this.#violation(problem)
    const blob = field === undefined ? undefined : parameters[field]
    if (field !== undefined && !(blob instanceof Upload)) return this.#violation('there is no file')
    if (field === undefined && text === '') return this.#violation('message text is empty')
    const message_id = this.#nextMessage++
    const reply = parameters['reply_parameters'] as { message_id: number } | undefined
    const chatId = String(parameters['chat_id'])
    this.#shown.show({
      id: `${chatId}:${message_id}`,
      chatId,
      threadId: parameters['message_thread_id'] === undefined ? undefined : String(parameters['message_thread_id']),
      text,
      replyTo: reply && `${chatId}:${reply.message_id}`,
      files: blob instanceof Upload && kind ? [{ ...blob, kind }] : [],
      buttons: buttonsOf(parameters['reply_markup']),
    })
    return ok({ message_id, date: 1_800_000_000, chat: { id: Number(chatId), type: 'private' }, text })
  }

  #edit(parameters: Parameters): PlatformAnswer {
    const id = `${String(parameters['chat_id'])}:${String(parameters['message_id'])}`
    const text = String(parameters['text'])
    const problem = checkText(text, parameters['parse_mode'], 4096)
    if (problem !== undefined) return this.#violation(problem)
    const shown = this.#shown.find(id)
    if (!shown) return this.#violation('message to edit not found')
    if (shown.text === text)
      return refuse(400, 'Bad Request: message is not modified: specified new message content is the same')
    this.#shown.edit(id, text)
    return ok({ message_id: Number(parameters['message_id']), date: 1, chat: { id: Number(parameters['chat_id']) } })
  }

  #other(method: string, parameters: Parameters): PlatformAnswer {
    if (method === 'getMe') return ok(BOT)
    if (method === 'deleteWebhook' || method === 'setWebhook') {
      this.#webhookUrl = String(parameters['url'] ?? '')
      return ok(true)
    }
    if (method === 'getWebhookInfo') return ok({ url: this.#webhookUrl, pending_update_count: 0 })
    if (method === 'deleteMessage') return this.#delete(parameters)
    if (method === 'sendChatAction') this.typing.push(String(parameters['chat_id']))
    else if (method === 'setMessageReaction') this.#react(parameters)
    else if (method === 'getFile') return this.#getFile(String(parameters['file_id']))
    else if (method !== 'answerCallbackQuery') return this.#violation(`method ${method} not found`, 404)
    return ok(true)
  }
  #delete(parameters: Parameters): PlatformAnswer {
    const id = `${String(parameters['chat_id'])}:${String(parameters['message_id'])}`
    return this.#shown.remove(id) ? ok(true) : refuse(400, 'Bad Request: message to delete not found')
  }
  #react(parameters: Parameters): void {
    const [reaction] = parameters['reaction'] as { emoji: string }[]
    const messageId = `${String(parameters['chat_id'])}:${String(parameters['message_id'])}`
    this.reactions.push({ messageId, emoji: reaction?.emoji ?? '' })
  }
  #getFile(id: string): PlatformAnswer {
    const file = this.#files.get(id)
    if (!file) return this.#violation('wrong file_id')
    return ok({ file_id: id, file_unique_id: id, file_size: file.bytes.length, file_path: `documents/${id}` })
  }
  #download(pathname: string): PlatformAnswer {
    const [, token, id] = /^\/file\/bot([^/]+)\/documents\/(.+)$/.exec(pathname) ?? []
    const file = this.#files.get(id ?? '')
    return token === TOKEN && file ? { status: 200, body: file.bytes } : refuse(404, 'Not Found')
  }
  /** Ends the webhook as another program does that polls. */
  dropWebhook(): void {
    this.#webhookUrl = ''
  }

  #violation(what: string, status = 400): PlatformAnswer {
    this.violations.push(what)
    return refuse(status, `Bad Request: ${what}`)
  }
}

async function readParameters(call: PlatformCall): Promise<Parameters> {
  const type = call.headers['content-type'] ?? ''
  if (type.startsWith('multipart/')) {
    const entries: [string, unknown][] = []
    for (const [name, value] of await call.form())
      entries.push([name, typeof value === 'string' ? plain(value) : await readUpload(value)])
    return Object.fromEntries(entries)
  }
  const query = Object.fromEntries([...call.url.searchParams].map(([name, value]) => [name, plain(value)]))
  return { ...query, ...(call.json as object | undefined) }
}
/** Values of a form are JSON where they are objects. */
function plain(value: string): unknown {
  return /^[[{]/.test(value) ? JSON.parse(value) : value
}

function checkText(text: string, mode: unknown, limit: number): string | undefined {
  try {
    const shown = mode === 'HTML' ? parseTelegramHtml(text) : text
    return shown.length > limit ? 'message is too long' : undefined
  } catch (error) {
    return (error as Error).message
  }
}

function buttonsOf(markup: unknown) {
  const rows = (markup as { inline_keyboard?: { text: string; callback_data: string }[][] } | undefined)
    ?.inline_keyboard
  return (rows ?? []).flat().map(({ text, callback_data }) => ({ label: text, value: callback_data }))
}

class Upload {
  readonly name: string
  readonly mime: string
  readonly bytes: Uint8Array
  constructor(file: File, bytes: Uint8Array) {
    this.name = file.name
    this.mime = file.type
    this.bytes = bytes
  }
}
async function readUpload(file: File): Promise<Upload> {
  return new Upload(file, await file.bytes())
}
