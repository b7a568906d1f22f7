import * as v from 'valibot'
import { omitUndefined, readFailedBody, readFailedJson, readJson, UpstreamFailure } from 'svc/sdk'
import type { OutboundRequest, OutboundResponse } from 'svc/sdk'
import { toFailure } from './api-failure.ts'
import type { ErrorFinder } from './api-failure.ts'
import type { ChannelLink } from './channel.ts'
import { RecentMap } from './recent-map.ts'

/** One request to the API of a platform. At most one of `json`, `form` and `body` is given. */
export interface ApiRequest {
  /** POST with a body and GET without one, when absent. */
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly json?: unknown
  /** Fields and files of a multipart body. */
  readonly form?: FormData
  /** A body that is encoded already. Its type is in `headers`. */
  readonly body?: string | Uint8Array
  /** Ends the request beside the signal of the link. */
  readonly signal?: AbortSignal
  /** For the whole exchange; 30 seconds when absent. A long poll gives what the platform waits and 10 seconds. */
  readonly timeoutMs?: number
  /** The answer is a stream or a file of any size: so many milliseconds may pass between two pieces of it. */
  readonly streamIdleMs?: number
}

export interface ApiClientOptions {
  /** Names the platform in failures, such as `telegram`. */
  readonly system: string
  /** The headers of every request, such as the credentials. Asked each time: tokens change. */
  authenticate?(): Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>
  readonly findError?: ErrorFinder
  /** Texts that never appear in a failure, such as a token that is part of the address. */
  readonly secrets?: readonly string[]
  /** Refuses redirects, for addresses that no redirect may replace. */
  readonly refuseRedirects?: boolean
}

type ClientLink = Pick<ChannelLink<unknown>, 'fetch' | 'signal' | 'now'>

const DEFAULT_TIMEOUT_MS = 30_000
const MAX_CAUSES = 5
/** Headers with credentials. */
const CREDENTIAL = /^authorization$|token$|api-key$/i
/** Tokens are renewed, and several requests can run at once. */
const MAX_CREDENTIALS = 8
/** What is shorter could be a part of any word. */
const MIN_CREDENTIAL_CHARS = 8

/**
 * Sends requests to the API of one platform. Throws `UpstreamFailure` for every error, those that come with status 200
 * included. Sends each request once: the channel host retries.
 */
export class ApiClient {
  readonly #link: ClientLink
  readonly #options: ApiClientOptions
  /** Credentials of the last requests, such as tokens that the adapter obtained. */
  readonly #credentials = new RecentMap<string, string>(MAX_CREDENTIALS)

  constructor(link: ClientLink, options: ApiClientOptions) {
    this.#link = link
    this.#options = options
  }

  /** The answer, when its status is one of success. Its body is not read: for downloads and streams. */
  async open(url: string, request: ApiRequest = {}): Promise<OutboundResponse> {
    const response = await this.#exchange(url, request)
    if (!response.ok) throw this.#failure(response, await readBody(response))
    return response
  }

  /** The JSON answer, checked with `schema`. `what` names it in the failure, such as `the sent message`. */
  async json<S extends v.GenericSchema>(
    url: string,
    request: ApiRequest,
    schema: S,
    what: string,
  ): Promise<v.InferOutput<S>> {
    const response = await this.#exchange(url, request)
    const body = response.ok ? await this.#readJson(response) : await readBody(response)
    const error = this.#options.findError?.(answerOf(response, body))
    if (!response.ok || error) throw this.#failure(response, body)
    // Not `parse` of svc/sdk: platforms add fields whose names resemble those that are known.
    const result = v.safeParse(schema, body, { abortPipeEarly: true })
    if (result.success) return result.output
    const { system } = this.#options
    throw new UpstreamFailure(system, `${system} sent ${what} in a form that cannot be read`, {
      reason: 'malformed',
      retry: 'later',
    })
  }

  async #exchange(url: string, request: ApiRequest): Promise<OutboundResponse> {
    const { signal } = this.#link
    signal.throwIfAborted()
    try {
      return await this.#link.fetch(url, await this.#encode(url, request))
    } catch (error) {
      throw this.#withoutSecrets(error)
    }
  }

  async #encode(url: string, request: ApiRequest): Promise<OutboundRequest> {
    const { timeoutMs = DEFAULT_TIMEOUT_MS, streamIdleMs } = request
    const { body, type } = await encodeBody(request)
    const { href } = new URL(url)
    const headers = omitUndefined({
      accept: 'application/json',
      ...(await this.#options.authenticate?.()),
      'content-type': type,
      ...request.headers,
    })
    this.#noteCredentials(headers)
    return omitUndefined({
      method: request.method ?? (body === undefined ? 'GET' : 'POST'),
      headers,
      body,
      signal: request.signal ? AbortSignal.any([this.#link.signal, request.signal]) : this.#link.signal,
      headersTimeoutMs: timeoutMs,
      idleTimeoutMs: streamIdleMs ?? timeoutMs,
      totalTimeoutMs: streamIdleMs === undefined ? timeoutMs : 0,
      maxBytes: streamIdleMs === undefined ? undefined : Number.MAX_SAFE_INTEGER,
      check: this.#options.refuseRedirects ? (target: URL) => this.#refuseOther(href, target) : undefined,
    })
  }

  #noteCredentials(headers: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(headers)) {
      const credential = value.slice(value.indexOf(' ') + 1)
      if (CREDENTIAL.test(name) && credential.length >= MIN_CREDENTIAL_CHARS)
        this.#credentials.set(credential, credential)
    }
  }

  #refuseOther(href: string, target: URL): void {
    if (target.href === href) return
    const { system } = this.#options
    throw new UpstreamFailure(system, `${system} redirected the request to ${target.host}: it was not sent there`, {
      reason: 'invalid_request',
      retry: 'never',
    })
  }

  async #readJson(response: OutboundResponse): Promise<unknown> {
    const text = await this.#readText(response)
    try {
      return readJson(text)
    } catch {
      const { system } = this.#options
      // Such as the page of a proxy while the platform is away: the platform itself answers in JSON.
      throw new UpstreamFailure(system, `${system} answered ${response.status} with something that is not JSON`, {
        reason: 'malformed',
        retry: 'later',
      })
    }
  }

  async #readText(response: OutboundResponse): Promise<string> {
    try {
      return await response.text()
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || error.reason !== 'malformed') throw this.#withoutSecrets(error)
      // Such as one that is too long, which the next one need not be.
      const { system } = this.#options
      throw this.#withoutSecrets(new UpstreamFailure(system, error.message, { reason: 'malformed', retry: 'later' }))
    }
  }

  #failure(response: OutboundResponse, body: unknown): UpstreamFailure {
    const answer = answerOf(response, body)
    const error = this.#options.findError?.(answer) ?? {}
    return this.#withoutSecrets(toFailure(this.#options.system, answer, error, this.#link.now())) as UpstreamFailure
  }

  /** The failure under the name of the platform. Platforms quote what was sent, and hosts may be part of an address. */
  #withoutSecrets(error: unknown): unknown {
    if (!(error instanceof UpstreamFailure)) return error
    let { message } = error
    for (const secret of [...(this.#options.secrets ?? []), ...this.#credentials.values()])
      if (secret !== '') message = message.replaceAll(secret, '***')
    const { reason, retry, retryAfterSecs } = error
    const cause = codeOf(error)
    return new UpstreamFailure(this.#options.system, message, omitUndefined({ reason, retry, retryAfterSecs, cause }))
  }
}

/** The code of the system alone, such as ECONNREFUSED: the texts of causes may contain addresses with secrets. */
function codeOf(error: Error): Error | undefined {
  let at: unknown = error.cause
  for (let depth = 0; depth < MAX_CAUSES && at instanceof Error; depth++) {
    if ('code' in at && typeof at.code === 'string') return Object.assign(new Error(at.code), { code: at.code })
    at = at.cause
  }
  return undefined
}

function answerOf(response: OutboundResponse, body: unknown) {
  return { status: response.status, ok: response.ok, body, header: (name: string) => response.header(name) }
}

/** The body of a failure as JSON, or else its text. */
async function readBody(response: OutboundResponse): Promise<unknown> {
  const text = await readFailedBody(response)
  return readFailedJson(text) ?? text
}

interface EncodedBody {
  readonly body?: string | Uint8Array | undefined
  readonly type?: string | undefined
}
async function encodeBody({ json, form, body }: ApiRequest): Promise<EncodedBody> {
  if (json !== undefined) return { body: JSON.stringify(json), type: 'application/json' }
  if (!form) return { body }
  const encoded = new Response(form)
  return { body: await encoded.bytes(), type: encoded.headers.get('content-type') ?? undefined }
}

/** An address without slashes at its end, so that a path can follow. */
export function trimSlashes(url: string): string {
  return url.replace(/\/+$/, '')
}
