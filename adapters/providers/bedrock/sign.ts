import { createHash, createHmac } from 'node:crypto'
import { SignatureV4 } from '@smithy/signature-v4'
import type { Credentials } from './credentials.ts'

/** Percent-encoding of RFC 3986, which leaves fewer characters as they are than JavaScript does. */
export const percentEncode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)

/** Signature Version 4 of requests to the service `bedrock` of one region. */
export class RequestSigner {
  readonly #region: string

  constructor(region: string) {
    this.#region = region
  }

  /** The headers that authenticate a request: a POST of JSON when it has a body, or else a GET. `now` in ms. */
  async sign(
    url: URL,
    body: string | undefined,
    credentials: Credentials,
    now: number,
  ): Promise<Readonly<Record<string, string>>> {
    if ('bearer' in credentials) return { authorization: `Bearer ${credentials.bearer}` }
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
        method: body === undefined ? 'GET' : 'POST',
        protocol: url.protocol,
        hostname: url.hostname,
        path: url.pathname,
        query: Object.fromEntries(url.searchParams),
        headers: { host: url.host, ...(body !== undefined && { 'content-type': 'application/json' }) },
        body: body ?? '',
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
