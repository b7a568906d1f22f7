import { createHash, createHmac } from 'node:crypto'
import { createRequire } from 'node:module'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { createServer, request as httpRequest } from 'node:http'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { tmpdir } from 'node:os'
import type { OutboundRequest, OutboundResponse } from 'svc/sdk'
import { memoryFolder } from './memory-folder.ts'

/** What s3rver, which has no types, is used for here. */
interface S3Rver {
  callback(): RequestListener
  configureBuckets(): Promise<unknown>
}
type S3RverClass = new (options: {
  readonly directory: string
  readonly silent: boolean
  readonly vhostBuckets: boolean
  readonly configureBuckets: readonly { readonly name: string }[]
}) => S3Rver
/** What the server adds to the name of an object for the file with its content. */
const CONTENT = '._S3rver_object'
const load = createRequire(import.meta.url)

export const KEY = 'S3RVER'

/** Answers a request in place of the server; `false` leaves it to the server. */
export type Fault = (request: IncomingMessage, response: ServerResponse) => boolean | Promise<boolean>

/** A real S3 server with a bucket. Its only key is `KEY`. */
export interface S3Server extends AsyncDisposable {
  /** Of the key; `KEY` until it is changed. */
  secret: string
  readonly endpoint: string
  readonly bucket: string
  /** Set it to break requests. */
  fault: Fault | undefined
  /** Names of the objects and the files that hold them. */
  objects(): Promise<ReadonlyMap<string, string>>
}

export async function startS3(): Promise<S3Server> {
  const directory = await mkdtemp(join(memoryFolder() ?? tmpdir(), 'svc-s3-'))
  const bucket = 'agents'
  const Server = load('s3rver') as S3RverClass
  const s3 = new Server({ directory, silent: true, vhostBuckets: false, configureBuckets: [{ name: bucket }] })
  await s3.configureBuckets()
  const serve = s3.callback()
  const http = createServer(async (request, response) => {
    if ((await server.fault?.(request, response)) === true) return
    if (hasRightSignature(request, server.secret)) serve(request, response)
    else response.writeHead(403).end('<Error><Code>SignatureDoesNotMatch</Code></Error>')
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const { port } = http.address() as AddressInfo
  const server: S3Server = {
    endpoint: `http://127.0.0.1:${port}`,
    bucket,
    secret: KEY,
    fault: undefined,
    async objects() {
      const names = await readdir(join(directory, bucket), { recursive: true })
      const files = names.filter((name) => name.endsWith(CONTENT))
      return new Map(files.map((name) => [name.slice(0, -CONTENT.length), join(directory, bucket, name)]))
    },
    async [Symbol.asyncDispose]() {
      http.closeAllConnections()
      http.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
  return server
}

/** The answer of a server of the tests to a request that is meant for another host. */
export async function requestAt(endpoint: string, url: URL, options: OutboundRequest = {}): Promise<OutboundResponse> {
  const outgoing = httpRequest(new URL(url.pathname, endpoint), {
    method: options.method ?? 'GET',
    headers: { ...options.headers, host: url.host },
  }).end(options.body)
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage]
  const body = Buffer.concat(await incoming.toArray())
  const status = incoming.statusCode ?? 0
  return {
    status,
    ok: status < 300,
    url: url.href,
    header: (name) => incoming.headers[name]?.toString(),
    bytes: async () => body,
    text: async () => body.toString(),
    json: async () => JSON.parse(body.toString()) as unknown,
    chunks: async function* () {
      yield body
    },
    toResponse: () => new Response(body, { status }),
  }
}

/**
 * s3rver does not check signatures of version 4. A key that it does not know it refuses itself.
 * Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
function hasRightSignature({ headers, method, url = '' }: IncomingMessage, secret: string): boolean {
  const [, id, scope = '', names = '', signature] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\S+), SignedHeaders=(\S+), Signature=(\S+)$/.exec(
      headers.authorization ?? '',
    ) ?? []
  if (id !== KEY) return true
  const signed = names.split(';')
  if (['host', 'x-amz-content-sha256', 'x-amz-date'].some((name) => !signed.includes(name))) return false
  const [path, query = ''] = url.split('?')
  const lines = signed.map((name) => `${name}:${String(headers[name]).trim()}\n`).join('')
  const request = [method, path, query, lines, names, headers['x-amz-content-sha256']].join('\n')
  const text = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, createHash('sha256').update(request).digest('hex')]
  const key = scope.split('/').reduce((above: string | Buffer, part) => hmac(above, part), `AWS4${secret}`)
  return hmac(key, text.join('\n')).toString('hex') === signature
}
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()
