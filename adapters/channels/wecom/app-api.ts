import type * as v from 'valibot'
import { readFailedJson, UpstreamFailure } from 'svc/sdk'
import { AccessToken, ApiClient, PartialSends, toFailure, trimSlashes } from 'svc/channels'
import type { ApiRequest, ChannelLink, OutboundAttachment, OutboundMessage, SentMessage } from 'svc/channels'
import { personOf } from './address.ts'
import type { WeComConfig } from './config.ts'
import { encodeMarkdown, mediaType } from './encode.ts'
import { findError } from './errors.ts'
import { AppSent, Token, Uploaded } from './wire.ts'

const UPLOAD_TIMEOUT_MS = 120_000
const STREAM_IDLE_MS = 30_000

/** The requests of one application. WeCom takes the secret and the token in addresses only. */
export class AppApi {
  readonly #link: ChannelLink<WeComConfig>
  readonly #client: ApiClient
  readonly #base: string
  readonly #access: AccessToken
  readonly #partial = new PartialSends()
  /** Texts that must not appear in failures: the secret, and the present token, both parts of addresses. */
  readonly #secrets: [secret: string, token: string]

  constructor(link: ChannelLink<WeComConfig>) {
    const { token, base_url: base = 'https://qyapi.weixin.qq.com' } = link.config
    this.#link = link
    this.#base = trimSlashes(base)
    this.#secrets = [token, '']
    this.#client = new ApiClient(link, { system: 'wecom', findError, secrets: this.#secrets, refuseRedirects: true })
    this.#access = new AccessToken(link, () => this.#issueToken())
  }

  /** Whether the credentials hold. */
  async checkCredentials(): Promise<void> {
    await this.#access.use(async () => undefined)
  }

  send(message: OutboundMessage): Promise<SentMessage> {
    const { text, attachments } = message
    const steps = [
      ...(text === '' ? [] : [() => this.#post(message, { msgtype: 'markdown', markdown: encodeMarkdown(text) })]),
      ...attachments.map((file) => () => this.#sendFile(message, file)),
    ]
    return this.#partial.send(message.id, steps)
  }

  async readMedia(media: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const query = new URLSearchParams({ media_id: media })
    return this.#access.use(async (token) => {
      const request = { signal, headers: { accept: '*/*' }, streamIdleMs: STREAM_IDLE_MS }
      const response = await this.#client.open(this.#url('/media/get', token, query), request)
      if (!response.header('content-type')?.startsWith('application/json')) return response.chunks()
      // A failure has status 200, too.
      const answer = {
        status: 200,
        ok: true,
        body: readFailedJson(await response.text()),
        header: (name: string) => response.header(name),
      }
      throw toFailure('wecom', answer, findError(answer) ?? {}, this.#link.now())
    })
  }

  async #sendFile(message: OutboundMessage, file: OutboundAttachment): Promise<SentMessage> {
    const type = mediaType(file)
    const form = new FormData()
    form.set('media', new Blob([new Uint8Array(await file.bytes())], { type: file.mime }), file.name)
    const request = { form, timeoutMs: UPLOAD_TIMEOUT_MS }
    const query = new URLSearchParams({ type })
    const { media_id } = await this.#call('/media/upload', request, Uploaded, 'the uploaded file', query)
    return this.#post(message, { msgtype: type, [type]: { media_id } })
  }

  async #post({ to }: OutboundMessage, content: object): Promise<SentMessage> {
    const person = personOf(to.chatId)
    // `@all` is everybody, and `|` stands between several people.
    if (person === undefined || person === '@all' || person.includes('|'))
      throw unreachable('wecom: an application writes to one person at a time')
    const json = { touser: person, agentid: this.#link.config.agent_id, ...content }
    const sent = await this.#call('/message/send', { json }, AppSent, 'the sent message')
    if (sent.invaliduser || sent.unlicenseduser)
      throw unreachable('wecom does not know this person, or the application may not write to them')
    return { id: sent.msgid ?? '' }
  }

  async #issueToken() {
    const { corp_id: corpid = '', token: corpsecret } = this.#link.config
    const url = `${this.#base}/cgi-bin/gettoken?${new URLSearchParams({ corpid, corpsecret })}`
    const { access_token: token, expires_in: lifetimeSecs } = await this.#client.json(
      url,
      {},
      Token,
      'the access token',
    )
    this.#secrets[1] = token
    return { token, lifetimeSecs }
  }

  #call<S extends v.GenericSchema>(
    path: string,
    request: ApiRequest,
    schema: S,
    what: string,
    query = new URLSearchParams(),
  ): Promise<v.InferOutput<S>> {
    return this.#access.use((token) => this.#client.json(this.#url(path, token, query), request, schema, what))
  }

  #url(path: string, token: string, query: URLSearchParams): string {
    return `${this.#base}/cgi-bin${path}?${new URLSearchParams({ access_token: token, ...Object.fromEntries(query) })}`
  }
}

function unreachable(message: string): UpstreamFailure {
  return new UpstreamFailure('wecom', message, { reason: 'not_found', retry: 'never' })
}
