import { parse, UpstreamFailure } from 'svc/sdk'
import type { OutboundRequest, OutboundResponse } from 'svc/sdk'
import type * as v from 'valibot'
import { toUpstreamFailure } from './api-failure.ts'
import type { FailureClassifier } from './api-failure.ts'
import type { CompletionRequest } from './completion.ts'
import type { Embeddings, ProviderClient, ProviderLink } from './driver.ts'
import { estimateTokens } from './usage.ts'

export type ApiHeaders = Readonly<Record<string, string>>

/** One request to a vendor's API: a GET, or a POST when it has a body. */
export interface ApiRequest {
  readonly signal: AbortSignal
  /** JSON, already encoded. */
  readonly body?: string
  /** Instead of `body`: bytes of another type. */
  readonly upload?: { readonly bytes: Uint8Array; readonly contentType: string }
  /** The content type that is expected; `application/json` when absent. */
  readonly accept?: string
  readonly headers?: ApiHeaders
  /** The completion that is requested, where authentication depends on it. */
  readonly completion?: CompletionRequest
}

export interface ApiClientOptions {
  /** Returns the headers that authenticate a request. Called before each request: keys and tokens change. */
  authenticate(url: string, request: ApiRequest): Promise<ApiHeaders>
  /** Explains a response with an error status. */
  readonly classifyFailure: FailureClassifier
  /** Called when the vendor answers 401, before the failure is thrown: drop cached tokens here. */
  onUnauthorized?(): void
}

/** What a JSON response has to look like, and how it is named when it does not. */
export interface Expected<S extends v.GenericSchema> {
  readonly schema: S
  /** Such as `a list of models`. */
  readonly what: string
  /** Whether the same request may be answered better later; `never` when absent. */
  readonly retry?: 'later' | 'never'
}

/**
 * Sends requests to the API of one vendor. A response with an error status is thrown as `UpstreamFailure`; retries are
 * the caller's business.
 */
export class ApiClient {
  readonly #link: Pick<ProviderLink<unknown>, 'name' | 'fetch'>
  readonly #options: ApiClientOptions

  constructor(link: Pick<ProviderLink<unknown>, 'name' | 'fetch'>, options: ApiClientOptions) {
    this.#link = link
    this.#options = options
  }

  /** The response, when its status is one of success. */
  async send(url: string, request: ApiRequest): Promise<OutboundResponse> {
    request.signal.throwIfAborted()
    // Nothing here keeps the text of the body while the vendor answers: there are as many as there are calls.
    return this.#exchange(url, await this.#encode(url, request))
  }

  async #encode(url: string, request: ApiRequest): Promise<OutboundRequest> {
    const { signal, body, upload, accept = 'application/json', headers } = request
    const authentication = await this.#options.authenticate(url, request)
    const all = { ...headers, accept, ...authentication }
    if (upload)
      return { signal, headers: { ...all, 'content-type': upload.contentType }, method: 'POST', body: upload.bytes }
    if (body === undefined) return { signal, headers: all }
    return {
      signal,
      headers: { ...all, 'content-type': 'application/json' },
      method: 'POST',
      body: Buffer.from(body),
    }
  }

  async #exchange(url: string, request: OutboundRequest): Promise<OutboundResponse> {
    const response = await this.#link.fetch(url, request)
    if (response.ok) return response
    if (response.status === 401) this.#options.onUnauthorized?.()
    throw await toUpstreamFailure(this.#link.name, response, this.#options.classifyFailure)
  }

  /** Sends a request and parses the JSON response. */
  async json<S extends v.GenericSchema>(
    url: string,
    request: ApiRequest,
    { schema, what, retry = 'never' }: Expected<S>,
  ): Promise<v.InferOutput<S>> {
    const response = await this.send(url, request)
    const data = await response.json()
    try {
      return parse(schema, data)
    } catch (cause) {
      const { name } = this.#link
      throw new UpstreamFailure(name, `${name} sent ${what} that cannot be read`, { reason: 'malformed', retry, cause })
    }
  }
}

/** The base URL without slashes at its end, so that a path can follow. */
export function baseUrlOf(link: Pick<ProviderLink<unknown>, 'baseUrl'>): string {
  return link.baseUrl.replace(/\/+$/, '')
}

/** The key of a link as an `Authorization` header; no header when there is no key. */
export async function bearerToken(link: Pick<ProviderLink<unknown>, 'apiKey'>): Promise<ApiHeaders> {
  const key = await link.apiKey()
  return key === undefined ? {} : { authorization: `Bearer ${key}` }
}

/** Vendors have a few hundred models, and a page holds a thousand: more pages than this are a loop. */
const MAX_PAGES = 10

/** Collects the items of a paged list. `next` is the cursor of the next page. */
export async function collectPages<T>(
  loadPage: (
    cursor: string | undefined,
  ) => Promise<{ readonly items: readonly T[]; readonly next: string | null | undefined }>,
): Promise<readonly T[]> {
  const items: T[] = []
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES; page++) {
    const loaded = await loadPage(cursor)
    items.push(...loaded.items)
    if (!loaded.next) break
    cursor = loaded.next
  }
  return items
}

/** The preferred model when it is on offer, or else the first that is. */
export function chooseModel(models: readonly string[], preferred: string): string {
  return models.includes(preferred) ? preferred : (models[0] ?? preferred)
}

/** Proves address and key with the shortest completion, where no cheaper call does. */
export async function probeCompletion(
  complete: ProviderClient['complete'],
  model: string,
  signal: AbortSignal,
): Promise<{ readonly model: string }> {
  const request: CompletionRequest = {
    model,
    system: '',
    turns: [{ role: 'user', parts: [{ type: 'text', text: 'Answer with OK.' }] }],
    tools: [],
    maxTokens: 1,
  }
  for await (const event of complete(request, signal)) if (event.type === 'end') break
  return { model }
}

/** The tokens of an embedding request: as the vendor counted them, or else estimated. */
export function embeddingUsage(input: number | null | undefined, texts: readonly string[]): Embeddings['usage'] {
  if (input != null) return { input }
  return { input: texts.reduce((sum, text) => sum + estimateTokens(text), 0), estimated: true }
}

/** Vendors refuse an empty text; a blank has a vector everywhere. */
export function embeddableText(text: string): string {
  return text === '' ? ' ' : text
}
