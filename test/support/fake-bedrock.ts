import { createHash, createHmac } from 'node:crypto'
import { EventStreamCodec } from '@smithy/eventstream-codec'
import { SignatureV4 } from '@smithy/signature-v4'
import { models, refuse } from './fake-bedrock-rules.ts'
import { startVendor } from './vendor-server.ts'
import type { Answering, Line, RecordedCall, VendorServer } from './vendor-server.ts'
import type { Json } from './json.ts'

export interface BedrockAnswer {
  readonly text?: readonly string[]
  readonly thinking?: readonly string[]
  /** Reasoning that is not shown, before everything else. */
  readonly redacted?: string
  readonly calls?: readonly { readonly name: string; readonly args?: unknown; readonly id?: string }[]
  readonly stop?: string
  /** `null` leaves the counts out. */
  readonly usage?: Readonly<Record<string, unknown>> | null
  readonly status?: number
  /** The kind of failure, such as `ThrottlingException`. */
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Sent as they are, instead of anything made from the fields above. */
  readonly raw?: readonly Uint8Array[]
  readonly fault?: Line | 'cut'
}
export interface FakeBedrock extends VendorServer {
  script(...answers: readonly BedrockAnswer[]): void
  /** The bodies of the requests for an answer. */
  readonly asked: readonly Readonly<Record<string, Json>>[]
}
export const REGION = 'eu-central-1'
export const ID = 'AKIAIOSFODNN7EXAMPLE'
export const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes instanceof Uint8Array ? bytes : String(bytes)).toString(),
  (text) => Buffer.from(text),
)
/** A frame as AWS's own codec writes it. */
export function frame(type: string, payload: unknown, kind: 'event' | 'exception' = 'event'): Uint8Array {
  return codec.encode({
    headers: {
      [`:${kind}-type`]: { type: 'string', value: type },
      ':content-type': { type: 'string', value: 'application/json' },
      ':message-type': { type: 'string', value: kind },
    },
    body: Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload)),
  })
}

/** Node's own hashes in the form AWS's signer wants. */
class Sha256 {
  readonly #hash
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    const key =
      secret === undefined
        ? undefined
        : typeof secret === 'string'
          ? secret
          : Buffer.from(
              'buffer' in secret
                ? new Uint8Array(secret.buffer, secret.byteOffset, secret.byteLength)
                : new Uint8Array(secret),
            )
    this.#hash = key === undefined ? createHash('sha256') : createHmac('sha256', key)
  }
  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(
      typeof data === 'string'
        ? data
        : Buffer.from(
            'buffer' in data ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array(data),
          ),
    )
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest()
  }
  reset(): void {
    throw new Error('a hash is used once')
  }
}
const signer = new SignatureV4({
  service: 'bedrock',
  region: REGION,
  sha256: Sha256,
  applyChecksum: false,
  credentials: { accessKeyId: ID, secretAccessKey: SECRET },
})

/** Why somebody is not answered: the status, the kind and the words. */
type Problem = readonly [status: number, type: string, message: string]
const kindOf = (type: string): Readonly<Record<string, string>> => ({
  'x-amzn-errortype': `${type}:http://internal.amazon.com/coral/com.amazon.bedrock/`,
})

/**
 * A real HTTP server that speaks the Converse API and refuses what Bedrock refuses; AWS's own signer checks the
 * signatures.
 */
export async function startFakeBedrock(bearer = 'test-key'): Promise<FakeBedrock> {
  const scripted: BedrockAnswer[] = []
  const asked: Readonly<Record<string, Json>>[] = []
  const given = new Map<string, string>()

  async function handle(call: RecordedCall, answer: Answering): Promise<void> {
    const refuseWith = (...[status, type, message]: Problem): void => answer.json(status, { message }, kindOf(type))
    const refused = await refuseCaller(call, bearer)
    if (refused) return refuseWith(...refused)
    const {
      method,
      url: { pathname, searchParams },
      headers,
      text,
    } = call
    if (method === 'GET') {
      const list = listed(pathname, searchParams)
      return list ? answer.json(200, list) : refuseWith(404, 'UnknownOperationException', 'unknown operation')
    }
    const [, id] = /^\/model\/([^/]+)\/converse-stream$/.exec(pathname) ?? []
    if (id === undefined) return refuseWith(404, 'UnknownOperationException', 'unknown operation')
    if (headers['content-type'] !== 'application/json')
      return refuseWith(415, 'UnsupportedMediaTypeException', 'content-type')
    if (typeof call.body !== 'object' || call.body === null)
      return refuseWith(400, 'SerializationException', 'The request could not be read')
    const body: Readonly<Record<string, Json>> = call.body
    if (/\\ud[89a-f]/i.test(text.replaceAll('\\\\', '')))
      return refuseWith(400, 'SerializationException', 'The request holds half a character')
    asked.push(body)
    const refusal = refuse(body, decodeURIComponent(id), given)
    if (refusal !== undefined) return refuseWith(400, 'ValidationException', refusal)
    const next = scripted.shift() ?? { text: ['Hello.'] }
    if (next.status !== undefined || next.body !== undefined) {
      const type = next.type ?? kinds[next.status ?? 0]
      // What stands before the service, such as a load balancer, names no kind.
      return answer.raw(
        next.status ?? 200,
        { ...(type !== undefined && { 'content-type': 'application/json', ...kindOf(type) }), ...next.headers },
        next.body ??
          (type === undefined ? `status ${next.status}` : JSON.stringify({ message: `status ${next.status}` })),
      )
    }
    return answer.stream(
      'application/vnd.amazon.eventstream',
      next.raw ?? [...stream(body, next, given)],
      next.fault === 'cut' ? 'whole' : next.fault,
    )
  }

  const vendor = await startVendor(handle)
  return Object.assign(vendor, {
    asked,
    script: (...next: readonly BedrockAnswer[]) => {
      scripted.push(...next)
    },
  })
}
const kinds: Readonly<Record<number, string>> = {
  400: 'ValidationException',
  403: 'AccessDeniedException',
  404: 'ResourceNotFoundException',
  408: 'ModelTimeoutException',
  424: 'ModelErrorException',
  429: 'ThrottlingException',
  500: 'InternalServerException',
  503: 'ServiceUnavailableException',
}

/** The request is signed once more with AWS's signer; both signatures have to be the same. */
async function refuseCaller(
  { method, url, headers, text }: RecordedCall,
  bearer: string,
): Promise<Problem | undefined> {
  const { authorization } = headers
  if (authorization === undefined) return [403, 'MissingAuthenticationTokenException', 'Missing Authentication Token']
  if (authorization.startsWith('Bearer '))
    return authorization === `Bearer ${bearer}`
      ? undefined
      : [403, 'AccessDeniedException', 'Authentication failed: Please make sure your API Key is valid.']
  const [, signed = ''] = /SignedHeaders=([^,]+)/.exec(authorization) ?? []
  const time = String(headers['x-amz-date'])
  const at = new Date(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'))
  if (Math.abs(at.getTime() - Date.now()) > 300_000) return [403, 'InvalidSignatureException', 'Signature expired']
  for (const needed of ['host', 'x-amz-date'])
    if (!signed.split(';').includes(needed)) return [403, 'InvalidSignatureException', `${needed} has to be signed`]
  const own = await signer.sign(
    {
      method,
      protocol: 'http:',
      hostname: 'fake',
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      body: text === '' ? undefined : text,
      headers: Object.fromEntries(signed.split(';').map((name) => [name, String(headers[name])])),
    },
    { signingDate: at },
  )
  const [, expected] = /Signature=(\w+)/.exec(own.headers['authorization'] ?? '') ?? []
  return authorization.endsWith(`Signature=${expected}`) && authorization.includes(`Credential=${ID}/`)
    ? undefined
    : [
        403,
        'InvalidSignatureException',
        'The request signature we calculated does not match the signature you provided.',
      ]
}

function listed(path: string, query: URLSearchParams): object | undefined {
  const ids = Object.keys(models)
  if (path === '/foundation-models')
    return {
      modelSummaries: ids
        .filter((id) => !/^(?:us|global)\./.test(id))
        .map((modelId) => ({ modelId, inferenceTypesSupported: ['ON_DEMAND'] })),
    }
  if (path !== '/inference-profiles') return undefined
  // One to a page, whatever is asked for, so that who reads only the first one is found out.
  const profiles = ids.filter((id) => /^(?:us|global)\./.test(id))
  const at = Number(query.get('nextToken')?.replace('page ', '') ?? 0)
  return {
    inferenceProfileSummaries: profiles
      .slice(at, at + 1)
      .map((inferenceProfileId) => ({ inferenceProfileId, status: 'ACTIVE' })),
    ...(at + 1 < profiles.length && { nextToken: `page ${at + 1}` }),
  }
}

function* stream(
  body: Readonly<Record<string, Json>>,
  answer: BedrockAnswer,
  given: Map<string, string>,
): Generator<Uint8Array> {
  const whole = answer.fault === undefined || answer.fault === 'split' || answer.fault === 'slow-bytes'
  const kind = body['additionalModelRequestFields']?.thinking?.type
  const thinks = kind === 'enabled' || kind === 'adaptive'
  let contentBlockIndex = -1
  const delta = (content: object): Uint8Array =>
    frame('contentBlockDelta', { contentBlockIndex, delta: content, p: 'abcdefgh'.slice(0, contentBlockIndex + 2) })
  const stop = (): Uint8Array => frame('contentBlockStop', { contentBlockIndex, p: 'abc' })
  yield frame('messageStart', { role: 'assistant', p: 'abcd' })
  if (thinks && answer.redacted !== undefined) {
    contentBlockIndex++
    const redactedContent = Buffer.from(answer.redacted).toString('base64')
    given.set(redactedContent, '')
    yield delta({ reasoningContent: { redactedContent } })
    yield stop()
  }
  if (thinks && answer.thinking) {
    contentBlockIndex++
    for (const text of answer.thinking) yield delta({ reasoningContent: { text } })
    const signature = `signed ${given.size}`
    given.set(signature, answer.thinking.join(''))
    yield delta({ reasoningContent: { signature } })
    yield stop()
  }
  if (answer.text) {
    contentBlockIndex++
    for (const text of answer.text) yield delta({ text })
    if (!whole) return
    yield stop()
  }
  for (const [at, { name, args, id }] of (answer.calls ?? []).entries()) {
    contentBlockIndex++
    yield frame('contentBlockStart', {
      contentBlockIndex,
      start: { toolUse: { toolUseId: id ?? `tooluse_${given.size}_${at}`, name } },
      p: 'a',
    })
    const json = JSON.stringify(args ?? {})
    if (json !== '{}')
      for (let from = 0; from < json.length; from += 3) yield delta({ toolUse: { input: json.slice(from, from + 3) } })
    yield stop()
  }
  yield frame('messageStop', {
    stopReason: answer.stop ?? (answer.calls && answer.calls.length > 0 ? 'tool_use' : 'end_turn'),
    p: 'ab',
  })
  if (answer.usage !== null)
    yield frame('metadata', {
      usage: { inputTokens: 10, outputTokens: 20, totalTokens: 30, ...answer.usage },
      metrics: { latencyMs: 5 },
      p: 'abc',
    })
}
