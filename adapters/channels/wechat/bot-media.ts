import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, trimSlashes } from 'svc/channels'
import type { ChannelLink, JsonObject, OutboundAttachment } from 'svc/channels'
import type { BotApi } from './bot-api.ts'
import { allowedBase } from './bot-session.ts'
import type { WeChatConfig } from './config.ts'

const UPLOAD_TIMEOUT_MS = 120_000
const BLOCK_BYTES = 16
/** Kinds of files for the address of an upload. */
const UPLOAD_KIND = { image: 1, video: 2, file: 3 } as const
export type UploadKind = keyof typeof UPLOAD_KIND
const Reference = v.object({
  param: v.pipe(v.string(), v.minLength(1)),
  key: v.optional(v.pipe(v.string(), v.regex(/^[0-9a-f]{32}$/i))),
})

/** A file that was uploaded, as a message names it. */
export interface UploadedMedia {
  readonly param: string
  /** In hexadecimal. */
  readonly key: string
  readonly size: number
  readonly encryptedSize: number
}

/** Reads and writes files of a bot, which are encrypted with a key each (AES-128-ECB). They need no credentials. */
export class BotMedia {
  readonly #config: WeChatConfig
  readonly #client: ApiClient
  readonly #api: BotApi

  constructor(link: ChannelLink<WeChatConfig>, api: BotApi) {
    this.#config = link.config
    this.#api = api
    this.#client = new ApiClient(link, { system: 'wechat' })
  }

  async *read(reference: JsonObject, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { param, key } = v.parse(Reference, reference)
    const url = this.#url('download', { encrypted_query_param: param })
    const response = await this.#client.open(url, { signal, headers: { accept: '*/*' }, streamIdleMs: 30_000 })
    if (key === undefined) return yield* response.chunks()
    const decipher = createDecipheriv('aes-128-ecb', Buffer.from(key, 'hex'), null)
    for await (const chunk of response.chunks()) yield decipher.update(chunk)
    try {
      yield decipher.final()
    } catch {
      throw new UpstreamFailure('wechat', 'wechat: the file cannot be decrypted', {
        reason: 'invalid_request',
        retry: 'never',
      })
    }
  }

  async upload(to: string, file: OutboundAttachment, kind: UploadKind): Promise<UploadedMedia> {
    const bytes = await file.bytes()
    const key = randomBytes(BLOCK_BYTES)
    const cipher = createCipheriv('aes-128-ecb', key, null)
    const encrypted = Buffer.concat([cipher.update(bytes), cipher.final()])
    const fileKey = randomBytes(BLOCK_BYTES).toString('hex')
    const address = await this.#api.uploadAddress({
      filekey: fileKey,
      media_type: UPLOAD_KIND[kind],
      to_user_id: to,
      rawsize: bytes.length,
      rawfilemd5: createHash('md5').update(bytes).digest('hex'),
      filesize: encrypted.length,
      no_need_thumb: true,
      aeskey: key.toString('hex'),
    })
    const full = address.upload_full_url
    const url =
      full && allowedBase(full, this.#config) !== undefined
        ? full
        : this.#url('upload', { encrypted_query_param: address.upload_param ?? '', filekey: fileKey })
    const response = await this.#client.open(url, {
      method: 'POST',
      body: new Uint8Array(encrypted),
      headers: { accept: '*/*', 'content-type': 'application/octet-stream' },
      timeoutMs: UPLOAD_TIMEOUT_MS,
    })
    const param = response.header('x-encrypted-param')
    if (!param)
      throw new UpstreamFailure('wechat', 'wechat took a file without telling its address', {
        reason: 'malformed',
        retry: 'later',
      })
    return { param, key: key.toString('hex'), size: bytes.length, encryptedSize: encrypted.length }
  }

  #url(path: string, query: Readonly<Record<string, string>>): string {
    return `${trimSlashes(this.#config.cdn_url)}/${path}?${new URLSearchParams(query).toString()}`
  }
}
