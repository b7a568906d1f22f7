import { createHash } from 'node:crypto'
import { Sha256 } from '@smithy/core/checksum'
import { SignatureV4 } from '@smithy/signature-v4'
import { monotonicClock, sleep } from 'svc/internal'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { Counter, Fetch, OutboundResponse } from 'svc/sdk'
import { explain, isBusy, readCode, unreachable } from './failures.ts'
import type { Place } from './failures.ts'

export interface BucketOptions extends Place {
  /** With the bucket in it when the bucket is in the host name. Ends in `/`. */
  readonly base: URL
  readonly region: string
  readonly prefix: string
  readonly credentials: {
    readonly accessKeyId: string
    readonly secretAccessKey: string
    readonly sessionToken?: string
  }
  readonly timeoutMs: number
  readonly attempts: number
}
export interface BucketDeps {
  readonly fetch: Fetch
  readonly requests: Counter
  /** Aborts when the plugin unloads. */
  readonly signal: AbortSignal
  /** Told of each request: why it failed for good, or `undefined`. */
  readonly settled: (problem: string | undefined) => void
}
type Method = 'GET' | 'PUT' | 'DELETE'

/** The pause before the second try; each further one is twice as long. */
const FIRST_PAUSE_MS = 200
const MAX_PAUSE_MS = 10_000
/** An answer that is not an object: an explanation in XML. */
const MAX_ANSWER_BYTES = 65_536
const EMPTY = new Uint8Array()

/**
 * Objects of one bucket, over the guarded way to the network and at the configured address only. unstorage has a driver
 * for S3 with no place for a `fetch` of ours, nor for timeouts, retries or limits.
 * Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_Simple_Storage_Service.html
 */
export class Bucket {
  readonly #options: BucketOptions
  readonly #deps: BucketDeps
  readonly #signer: SignatureV4
  constructor(options: BucketOptions, deps: BucketDeps) {
    this.#options = options
    this.#deps = deps
    this.#signer = new SignatureV4({
      service: 's3',
      region: options.region,
      credentials: options.credentials,
      sha256: Sha256,
      // The path of S3 is encoded once.
      uriEscapePath: false,
      applyChecksum: true,
    })
  }

  /** Durable when it settles. Throws `service_unavailable`. */
  async put(key: string, content: Uint8Array): Promise<void> {
    await this.#send('PUT', key, content, (response) => response.bytes())
  }
  /** `undefined` when there is none. Throws `service_unavailable`, also for one of more than `maxBytes`. */
  get(key: string, maxBytes: number): Promise<Uint8Array | undefined> {
    return this.#send('GET', key, EMPTY, (response) => response.bytes(), maxBytes)
  }
  /** Also when there is none. Throws `service_unavailable`. */
  async remove(key: string): Promise<void> {
    await this.#send('DELETE', key, EMPTY, (response) => response.bytes())
  }

  /**
   * One operation with its further tries; each may be repeated, since nothing ever has the name of another object.
   * `undefined` for an object that is not there.
   */
  async #send<T>(
    method: Method,
    key: string,
    body: Uint8Array,
    read: (response: OutboundResponse) => Promise<T>,
    maxBytes = 0,
  ): Promise<T | undefined> {
    const { requests, settled, signal } = this.#deps
    const operation = method.toLowerCase()
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#try(method, key, body, read, maxBytes)
      if (!('problem' in outcome)) {
        requests.add(1, { operation, outcome: 'ok' })
        settled(undefined)
        return outcome.value
      }
      if (!outcome.again || attempt >= this.#options.attempts) {
        requests.add(1, { operation, outcome: 'failed' })
        settled(outcome.problem)
        throw new Refusal('service_unavailable', outcome.problem, {
          cause: outcome.cause,
          ...(outcome.again && { retryAfterSecs: 5 }),
        })
      }
      requests.add(1, { operation, outcome: 'retried' })
      await sleep(monotonicClock, pauseMs(attempt), signal)
    }
  }

  async #try<T>(
    method: Method,
    key: string,
    body: Uint8Array,
    read: (response: OutboundResponse) => Promise<T>,
    maxBytes: number,
  ): Promise<
    { readonly value: T | undefined } | { readonly problem: string; readonly again: boolean; readonly cause?: unknown }
  > {
    const { timeoutMs } = this.#options
    try {
      const response = await this.#request(method, key, body, Math.max(maxBytes, MAX_ANSWER_BYTES))
      const isAccepted = response.ok && (method !== 'PUT' || response.header('etag') !== undefined)
      if (isAccepted) return { value: await read(response) }
      const code = readCode(await response.text())
      if (response.status === 404 && code !== 'NoSuchBucket' && method !== 'PUT') return { value: undefined }
      const status = response.status
      return { problem: explain(this.#options, { method, status, code }), again: isBusy(status, code) }
    } catch (error) {
      if (error instanceof UpstreamFailure)
        return { problem: unreachable(this.#options, error, timeoutMs), again: error.retry === 'later', cause: error }
      if (error instanceof Refusal)
        return { problem: `plugins.files.s3.endpoint: ${error.message}`, again: false, cause: error }
      throw error
    }
  }

  async #request(method: Method, key: string, body: Uint8Array, maxBytes: number): Promise<OutboundResponse> {
    const { base, prefix, timeoutMs } = this.#options
    const url = new URL(`${prefix}${key}`, base)
    const { headers } = await this.#signer.sign({
      method,
      protocol: url.protocol,
      hostname: url.hostname,
      path: url.pathname,
      query: {},
      headers: {
        host: url.host,
        ...(method === 'PUT' && { 'content-type': 'application/octet-stream' }),
        'x-amz-content-sha256': createHash('sha256').update(body).digest('hex'),
      },
      body,
    })
    const { host: _, ...sent } = headers
    return await this.#deps.fetch(url, {
      method,
      headers: sent,
      ...(method === 'PUT' && { body }),
      signal: this.#deps.signal,
      headersTimeoutMs: timeoutMs,
      idleTimeoutMs: timeoutMs,
      totalTimeoutMs: timeoutMs,
      maxBytes,
      check(to) {
        // The signature is for this host, and only the configuration says where files go.
        if (to.host !== url.host)
          throw new Refusal('forbidden', `the server sends requests on to ${to.host}: set endpoint and region to that`)
      },
    })
  }
}

/** With some chance in it, so that daemons that were refused together do not come back together. */
function pauseMs(attempt: number): number {
  return Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2)
}
