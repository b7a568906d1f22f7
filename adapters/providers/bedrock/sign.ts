import { createHash, createHmac } from 'node:crypto'

/** What proves who asks: a key that is sent, or one that signs. */
export type Credentials =
  | { readonly bearer: string }
  | { readonly id: string; readonly secret: string; readonly session?: string | undefined }

const sha256 = (data: string): string => createHash('sha256').update(data).digest('hex')
const hmac = (key: string | Buffer, data: string): Buffer => createHmac('sha256', key).update(data).digest()
/** As RFC 3986 has it, which leaves fewer characters alone than JavaScript does. */
export const percent = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)

/**
 * The headers of a signed request: Signature Version 4 for the service `bedrock`. `now` is in ms since 1970.
 * Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
export function sign(
  request: { readonly method: string; readonly url: URL; readonly body: string; readonly type: string | undefined },
  credentials: Credentials,
  region: string,
  now: number,
): Readonly<Record<string, string>> {
  if ('bearer' in credentials) return { authorization: `Bearer ${credentials.bearer}` }
  const { method, url, body, type } = request
  const time = new Date(now).toISOString().replace(/[:-]|\.\d+/g, '')
  const date = time.slice(0, 8)
  const headers: Record<string, string> = {
    ...(type !== undefined && { 'content-type': type }),
    host: url.host,
    'x-amz-date': time,
    ...(credentials.session !== undefined && { 'x-amz-security-token': credentials.session }),
  }
  const names = Object.keys(headers).toSorted()
  // The path is encoded once more, as for every service but S3.
  const path = url.pathname.split('/').map(percent).join('/')
  const query = [...url.searchParams]
    .map(([name, value]) => `${percent(name)}=${percent(value)}`)
    .toSorted()
    .join('&')
  const canonical = [
    method,
    path,
    query,
    ...names.map((name) => `${name}:${headers[name]}`),
    '',
    names.join(';'),
    sha256(body),
  ].join('\n')
  const scope = `${date}/${region}/bedrock/aws4_request`
  const key = ['aws4_request', 'bedrock', region, date].reduceRight(
    (made: string | Buffer, part) => hmac(made, part),
    `AWS4${credentials.secret}`,
  )
  const signature = createHmac('sha256', key)
    .update(`AWS4-HMAC-SHA256\n${time}\n${scope}\n${sha256(canonical)}`)
    .digest('hex')
  const { host: _, 'content-type': __, ...sent } = headers
  return {
    ...sent,
    authorization: `AWS4-HMAC-SHA256 Credential=${credentials.id}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`,
  }
}
