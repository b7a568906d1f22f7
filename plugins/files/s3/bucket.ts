import { createHash } from 'node:crypto'
import { Sha256 } from '@smithy/core/checksum'
import { SignatureV4 } from '@smithy/signature-v4'
import { monotonicClock, sleep } from 'svc/internal'
import { omitUndefined, readRetryAfter, Refusal, UpstreamFailure } from 'svc/sdk'
import type { Counter, Fetch, OutboundResponse } from 'svc/sdk'
import type { AccessKey } from './access-key.ts'
import { aheadOf, explain, isBusy, readCode, unreachable } from './failures.ts'
import type { Place } from './failures.ts'

export interface BucketOptions extends Place {
  /** With the bucket in it when the bucket is in the host name. Ends in `/`. */
  readonly base: URL
  readonly region: string
  readonly prefix: string
  /** Asked for each request, so that a key can be replaced; or what is missing. */
  readonly accessKey: () => Promise<AccessKey | { readonly missing: string }>
  /** For one request. */
  readonly timeoutMs: number
  /** For an operation with all its tries and pauses. */
  readonly deadlineMs: number
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
interface Operation<T> {
  readonly method: Method
  readonly key: string
  readonly body: Uint8Array
  readonly maxBytes: number
  readonly read: (response: OutboundResponse) => Promise<T>
}
interface Failure {
  readonly problem: string
  /** Whether the same request may work later. */
  readonly again: boolean
  /** What the server asks for. */
  readonly pauseMs?: number
  readonly cause?: unknown
}

/** The pause before the second try; each further one is twice as long. */
const FIRST_PAUSE_MS = 200
const MAX_PAUSE_MS = 10_000
/** An answer that is not an object: an explanation in XML. */
const MAX_ANSWER_BYTES = 65_536
const EMPTY = new Uint8Array()
const bytesOf = (response: OutboundResponse): Promise<Uint8Array> => response.bytes()

const OBJECT_KEY = /^\.?[\w-]+(?:\/[\w-]+)*$/
/** Whether a key is of the kind that is written here: any other could lead out of the prefix, or to another server. */
export const isObjectKey = (key: string): boolean => OBJECT_KEY.test(key)

/**
 * Objects of one bucket, over the guarded way to the network and at the configured address only. unstorage has a driver
 * for S3 with no place for a `fetch` of ours, nor for timeouts, retries or limits.
 * Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_Simple_Storage_Service.html
 */
export class Bucket {
  readonly #options: BucketOptions
  readonly #deps: BucketDeps
  #aheadSecs = 0
  constructor(options: BucketOptions, deps: BucketDeps) {
    this.#options = options
    this.#deps = deps
  }

  /** Seconds that this machine was ahead of the server at its last answer; negative for behind. */
  get aheadSecs(): number {
    return this.#aheadSecs
  }

  /** Durable when it settles. Throws `service_unavailable`. */
  async put(key: string, content: Uint8Array): Promise<void> {
    await this.#send({ method: 'PUT', key, body: content, maxBytes: 0, read: bytesOf })
  }
  /** `undefined` when there is none. Throws `service_unavailable`, also for one of more than `maxBytes`. */
  get(key: string, maxBytes: number): Promise<Uint8Array | undefined> {
    return this.#send({ method: 'GET', key, body: EMPTY, maxBytes, read: bytesOf })
  }
  /** Also when there is none. Throws `service_unavailable`. */
  async remove(key: string): Promise<void> {
    await this.#send({ method: 'DELETE', key, body: EMPTY, maxBytes: 0, read: bytesOf })
  }

  /**
   * One operation with its further tries; each may be repeated, since nothing ever has the name of another object.
   * `undefined` for an object that is not there.
   */
  async #send<T>(operation: Operation<T>): Promise<T | undefined> {
    if (!isObjectKey(operation.key))
      throw new Refusal('service_unavailable', `A row names the object "${operation.key}", which svc has not written`)
    const { requests, settled, signal } = this.#deps
    const name = operation.method.toLowerCase()
    const end = monotonicClock.now() + this.#options.deadlineMs
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#try(operation, end - monotonicClock.now())
      if (!('problem' in outcome)) {
        requests.add(1, { operation: name, outcome: 'ok' })
        settled(undefined)
        return outcome.value
      }
      const { problem, again, cause } = outcome
      const pause = Math.max(outcome.pauseMs ?? 0, pauseMs(attempt))
      const isLate = monotonicClock.now() + pause >= end
      if (!again || isLate || attempt >= this.#options.attempts) {
        requests.add(1, { operation: name, outcome: 'failed' })
        settled(problem)
        const retryAfterSecs = again ? Math.max(5, Math.ceil((outcome.pauseMs ?? 0) / 1000)) : undefined
        throw new Refusal('service_unavailable', problem, { cause, retryAfterSecs })
      }
      requests.add(1, { operation: name, outcome: 'retried' })
      await sleep(monotonicClock, pause, signal)
    }
  }

  async #try<T>(operation: Operation<T>, leftMs: number): Promise<{ readonly value: T | undefined } | Failure> {
    const { method, read } = operation
    const timeoutMs = Math.max(1, Math.min(this.#options.timeoutMs, leftMs))
    const key = await this.#options.accessKey()
    if ('missing' in key) return { problem: key.missing, again: false }
    try {
      const response = await this.#request(operation, key, timeoutMs)
      this.#aheadSecs = aheadOf(response.header('date')) ?? 0
      const isAccepted = response.ok && (method !== 'PUT' || response.header('etag') !== undefined)
      if (isAccepted) return { value: await read(response) }
      const text = await response.text()
      const code = readCode(text)
      const { status } = response
      if (status === 404 && code !== 'NoSuchBucket' && method !== 'PUT') return { value: undefined }
      const secs = readRetryAfter(response.header('retry-after'), undefined, Date.now())
      return omitUndefined({
        problem: explain(this.#options, { method, status, code, text, header: (name) => response.header(name) }),
        again: isBusy(status, code),
        pauseMs: secs === undefined ? undefined : secs * 1000,
      })
    } catch (error) {
      if (error instanceof UpstreamFailure)
        return {
          problem: unreachable(this.#options, error, Math.round(timeoutMs)),
          again: error.retry === 'later',
          cause: error,
        }
      if (error instanceof Refusal)
        return { problem: `plugins.files.s3.endpoint: ${error.message}`, again: false, cause: error }
      throw error
    }
  }

  async #request(
    { method, key, body, maxBytes }: Pick<Operation<unknown>, 'method' | 'key' | 'body' | 'maxBytes'>,
    credentials: AccessKey,
    timeoutMs: number,
  ): Promise<OutboundResponse> {
    const { base, prefix, region } = this.#options
    const url = new URL(`${prefix}${key}`, base)
    const signer = new SignatureV4({
      service: 's3',
      region,
      credentials,
      sha256: Sha256,
      // The path of S3 is encoded once.
      uriEscapePath: false,
      applyChecksum: true,
    })
    const { headers } = await signer.sign({
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
      maxBytes: Math.max(maxBytes, MAX_ANSWER_BYTES),
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
