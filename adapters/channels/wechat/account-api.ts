import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import type { OutboundResponse } from 'svc/sdk'
import { ApiClient, toFailure, trimSlashes } from 'svc/channels'
import type { ApiAnswer, ApiError, ApiRequest, ChannelLink } from 'svc/channels'
import { Done, Failure, Token, Uploaded, VideoAddress } from './account-wire.ts'
import { accountFields } from './config.ts'
import type { WeChatConfig } from './config.ts'

const BASE_URL = 'https://api.weixin.qq.com'
/** A token is renewed so long before it ends. */
const MARGIN_MS = 300_000
const UPLOAD_TIMEOUT_MS = 120_000

type Meaning = Omit<ApiError, 'message'>
/** The token was replaced or has ended: another one is asked for. */
const TOKEN_GONE: Meaning = { reason: 'cut', retry: 'later' }
const WRONG_ACCOUNT: Meaning = { reason: 'auth', retry: 'never' }
const THROTTLED: Meaning = { reason: 'rate_limit', retry: 'later' }
const REFUSED: Meaning = { reason: 'invalid_request', retry: 'never' }
/** https://developers.weixin.qq.com/doc/offiaccount/Getting_Started/Global_Return_Code.html */
const MEANINGS: ReadonlyMap<number, Meaning> = new Map<number, Meaning>([
  [-1, { reason: 'overloaded', retry: 'later' }],
  [40_001, TOKEN_GONE],
  [40_014, TOKEN_GONE],
  [42_001, TOKEN_GONE],
  [40_013, WRONG_ACCOUNT],
  [40_125, WRONG_ACCOUNT],
  // The address of the daemon is not on the list of the account.
  [40_164, WRONG_ACCOUNT],
  // The account may not use this part of the API.
  [48_001, WRONG_ACCOUNT],
  [45_009, THROTTLED],
  [45_011, THROTTLED],
  // Later than 48 hours after the last message of the person, or too many since.
  [45_015, REFUSED],
  [45_047, REFUSED],
])

/** The requests of an official account. The API takes its token as a parameter. */
export class AccountApi {
  readonly #link: ChannelLink<WeChatConfig>
  readonly #client: ApiClient
  readonly #open: ApiClient
  readonly #base: string
  /** The last one is the token of the API. */
  readonly #secrets: string[]
  #token: { readonly value: string; readonly until: number } | undefined
  #renewal: Promise<string> | undefined

  constructor(link: ChannelLink<WeChatConfig>) {
    const { appSecret, webhookToken, aesKey } = accountFields(link.config)
    this.#link = link
    this.#base = trimSlashes(link.config.base_url ?? BASE_URL)
    this.#secrets = [appSecret, webhookToken, aesKey, '']
    const common = { system: 'wechat', findError, secrets: this.#secrets }
    this.#client = new ApiClient(link, { ...common, refuseRedirects: true })
    this.#open = new ApiClient(link, { system: 'wechat' })
  }

  send = (message: object) => this.#call('message/custom/send', { json: message }, Done, 'the sent message')

  typing = (person: string) =>
    this.#call('message/custom/typing', { json: { touser: person, command: 'Typing' } }, Done, 'the typing indicator')

  async upload(type: 'image', form: FormData): Promise<string> {
    const request = { form, timeoutMs: UPLOAD_TIMEOUT_MS }
    const uploaded = await this.#call(`media/upload?type=${type}`, request, Uploaded, 'the uploaded file')
    return uploaded.media_id
  }

  /** The content of a file that somebody sent. */
  async download(media: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    return (await this.#withToken((token) => this.#openFile(token, media, signal))).chunks()
  }

  /** A token that holds for some minutes at least. */
  async token(): Promise<string> {
    const { value, until } = this.#token ?? { value: '', until: 0 }
    if (this.#link.now() < until) return value
    this.#renewal ??= this.#renew().finally(() => (this.#renewal = undefined))
    return this.#renewal
  }

  async #renew(): Promise<string> {
    const { appId: appid, appSecret: secret } = accountFields(this.#link.config)
    const json = { grant_type: 'client_credential', appid, secret }
    const answer = this.#client.json(`${this.#base}/cgi-bin/stable_token`, { json }, Token, 'a token')
    const { access_token: value, expires_in: seconds } = await asAuth(answer)
    this.#token = { value, until: this.#link.now() + seconds * 1000 - MARGIN_MS }
    this.#secrets[this.#secrets.length - 1] = value
    return value
  }

  /** A video comes as the address where it is, and an error with status 200 as everywhere. */
  async #openFile(token: string, media: string, signal: AbortSignal): Promise<OutboundResponse> {
    const request = { signal, headers: { accept: '*/*' }, streamIdleMs: 30_000 }
    const url = `${this.#base}/cgi-bin/media/get?${query({ access_token: token, media_id: media })}`
    const response = await this.#client.open(url, request)
    if (!/json|text\/plain/i.test(response.header('content-type') ?? '')) return response
    const answer = { status: 200, ok: false, body: await response.json(), header: () => undefined }
    const address = v.safeParse(VideoAddress, answer.body)
    if (!address.success) throw toFailure('wechat', answer, findError(answer) ?? {}, this.#link.now())
    // Without the token: the address is public for an hour.
    return this.#open.open(address.output.video_url, request)
  }

  #call<S extends v.GenericSchema>(
    path: string,
    request: ApiRequest,
    schema: S,
    what: string,
  ): Promise<v.InferOutput<S>> {
    const join = path.includes('?') ? '&' : '?'
    return this.#withToken((token) =>
      this.#client.json(`${this.#base}/cgi-bin/${path}${join}${query({ access_token: token })}`, request, schema, what),
    )
  }

  /** A token may be replaced at any time: then the request is sent once more, with another. */
  async #withToken<T>(work: (token: string) => Promise<T>): Promise<T> {
    try {
      return await work(await this.token())
    } catch (error) {
      if (!isTokenGone(error)) throw error
      this.#token = undefined
    }
    return asAuth(work(await this.token()))
  }
}

/** A fresh token that is refused is a matter of the credentials. */
async function asAuth<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!isTokenGone(error)) throw error
    throw new UpstreamFailure('wechat', error.message, { reason: 'auth', retry: 'never' })
  }
}

function isTokenGone(error: unknown): error is UpstreamFailure {
  return error instanceof UpstreamFailure && error.reason === 'cut'
}

function query(values: Readonly<Record<string, string>>): string {
  return new URLSearchParams(values).toString()
}

/** Errors come with status 200. */
function findError({ body }: ApiAnswer): ApiError | undefined {
  const parsed = v.safeParse(Failure, body)
  if (!parsed.success || parsed.output.errcode === 0) return undefined
  const { errcode, errmsg } = parsed.output
  return { message: `error ${errcode} ${errmsg}`.trim(), ...(MEANINGS.get(errcode) ?? REFUSED) }
}
