import { Sha256 } from '@smithy/core/checksum'
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
