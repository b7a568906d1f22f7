import { createHash, createHmac } from 'node:crypto'
import { SignatureV4 } from '@smithy/signature-v4'

/** What proves who asks: a key that is sent, or one that signs. */
export type Credentials =
  | { readonly bearer: string }
  | { readonly id: string; readonly secret: string; readonly session?: string | undefined }

/** As RFC 3986 has it, which leaves fewer characters alone than JavaScript does. */
export const percent = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)

/** Signature Version 4 of requests to the service `bedrock` of one region. */
export class RequestSigner {
  readonly #region: string

  constructor(region: string) {
    this.#region = region
  }

  /** The headers that prove who asks. `now` is in ms since 1970. */
  async sign(
    request: { readonly method: string; readonly url: URL; readonly body: string; readonly type: string | undefined },
    credentials: Credentials,
    now: number,
  ): Promise<Readonly<Record<string, string>>> {
    if ('bearer' in credentials) return { authorization: `Bearer ${credentials.bearer}` }
    const { method, url, body, type } = request
    const signer = new SignatureV4({
      service: 'bedrock',
      region: this.#region,
      credentials: {
        accessKeyId: credentials.id,
        secretAccessKey: credentials.secret,
        ...(credentials.session !== undefined && { sessionToken: credentials.session }),
      },
      sha256: Sha256,
      applyChecksum: false,
    })
    const { headers } = await signer.sign(
      {
        method,
        protocol: url.protocol,
        hostname: url.hostname,
        path: url.pathname,
        query: Object.fromEntries(url.searchParams),
        headers: { host: url.host, ...(type !== undefined && { 'content-type': type }) },
        body,
      },
      { signingDate: new Date(now) },
    )
    const { host: _, 'content-type': __, ...added } = headers
    return added
  }
}

type SourceData = string | ArrayBuffer | ArrayBufferView
const bytesOf = (data: SourceData): string | Uint8Array => {
  if (typeof data === 'string') return data
  return ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data)
}

/** The hash of Node in the form the signer asks for; with a secret it is an HMAC. */
class Sha256 {
  readonly #hash: ReturnType<typeof createHash> | ReturnType<typeof createHmac>

  constructor(secret?: SourceData) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(secret))
  }
  update(data: SourceData): void {
    this.#hash.update(bytesOf(data))
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest()
  }
  reset(): void {
    throw new Error('the signer makes a new hash for each digest')
  }
}
