import { randomInt } from 'node:crypto'
import * as v from 'valibot'
import { ApiClient } from 'svc/channels'
import type { ApiAnswer, ApiError, ApiRequest, ChannelLink } from 'svc/channels'
import type { BotSession } from './bot-session.ts'
import { BotConfig, Done, Failure, QrCode, QrStatus, Updates, UploadAddress } from './bot-wire.ts'
import type { WeChatConfig } from './config.ts'

/** The version of the protocol that this speaks, as Tencent numbers its own client. */
const PROTOCOL = { text: '2.4.8', number: String((2 << 16) | (4 << 8) | 8) }
const BASE_INFO = { channel_version: PROTOCOL.text, bot_agent: 'svc/1.0' }
/** WeChat holds a poll for this long. */
const QR_POLL_MS = 35_000
const POLL_MARGIN_MS = 10_000
const SESSION_EXPIRED = -14

type Link = ChannelLink<WeChatConfig>

const COMMON = { 'ilink-app-id': 'bot', 'ilink-app-clientversion': PROTOCOL.number }
function postHeaders(token?: string): Readonly<Record<string, string>> {
  return {
    ...COMMON,
    authorizationtype: 'ilink_bot_token',
    'x-wechat-uin': Buffer.from(String(randomInt(2 ** 32))).toString('base64'),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  }
}

/** The requests of a bot that is linked. */
export class BotApi {
  readonly #client: ApiClient
  readonly #base: string

  constructor(link: Link, { token, base }: BotSession) {
    this.#base = base
    this.#client = new ApiClient(link, {
      system: 'wechat',
      findError,
      secrets: [token],
      authenticate: () => postHeaders(token),
      refuseRedirects: true,
    })
  }

  notifyStart = () => this.#call('msg/notifystart', {}, Done, 'the answer to the start')

  updates = (cursor: string, timeoutMs: number, signal: AbortSignal) =>
    this.#call('getupdates', { get_updates_buf: cursor }, Updates, 'the list of messages', {
      signal,
      timeoutMs: timeoutMs + POLL_MARGIN_MS,
    })

  send = (msg: object) => this.#call('sendmessage', { msg }, Done, 'the sent message')

  config = (user: string, context: string | undefined) =>
    this.#call('getconfig', { ilink_user_id: user, context_token: context }, BotConfig, 'the configuration')

  typing = (user: string, ticket: string) =>
    this.#call('sendtyping', { ilink_user_id: user, typing_ticket: ticket, status: 1 }, Done, 'the typing indicator')

  uploadAddress = (file: object) => this.#call('getuploadurl', file, UploadAddress, 'the address for a file')

  #call<S extends v.GenericSchema>(
    path: string,
    body: object,
    schema: S,
    what: string,
    more: ApiRequest = {},
  ): Promise<v.InferOutput<S>> {
    const json = { ...body, base_info: BASE_INFO }
    return this.#client.json(`${this.#base}/ilink/bot/${path}`, { json, ...more }, schema, what)
  }
}

/** The requests before a bot is linked, which have no token. */
export class SignInApi {
  readonly #client: ApiClient

  constructor(link: Link) {
    this.#client = new ApiClient(link, { system: 'wechat', findError, refuseRedirects: true })
  }

  code = (base: string) =>
    this.#client.json(
      `${base}/ilink/bot/get_bot_qrcode?bot_type=3`,
      { json: { local_token_list: [] }, headers: postHeaders() },
      QrCode,
      'the QR code',
    )

  status(base: string, code: string): Promise<v.InferOutput<typeof QrStatus>> {
    const url = `${base}/ilink/bot/get_qrcode_status?qrcode=${encodeURIComponent(code)}`
    const request = { headers: COMMON, timeoutMs: QR_POLL_MS + POLL_MARGIN_MS }
    return this.#client.json(url, request, QrStatus, 'the state of the QR code')
  }
}

/** Errors come with status 200. Of their numbers Tencent documents one. */
function findError({ body }: ApiAnswer): ApiError | undefined {
  const parsed = v.safeParse(Failure, body)
  if (!parsed.success) return undefined
  const { ret, errcode, errmsg } = parsed.output
  const code = ret === 0 ? errcode : ret
  if (code === 0) return undefined
  if (code === SESSION_EXPIRED)
    return { message: 'the session has expired: scan the QR code again', reason: 'auth', retry: 'never' }
  return { message: `error ${code} ${errmsg}`.trim(), reason: 'server_error', retry: 'later' }
}
