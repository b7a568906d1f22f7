/** Options of one outbound request. */
export interface OutboundRequest {
  /** The method; GET when absent. */
  readonly method?: string
  /** The headers, by name. */
  readonly headers?: Readonly<Record<string, string>>
  /** The body: a text or bytes. */
  readonly body?: string | Uint8Array
  /** Ends the request, and the reading of its answer, when it aborts. */
  readonly signal?: AbortSignal
  /** A second signal, of the one whose request it is: set by the host, and cheap however many requests share it. */
  readonly owner?: AbortSignal
  /** Milliseconds until the answer's headers must be there. */
  readonly headersTimeoutMs?: number
  /** Milliseconds between two pieces of the body. */
  readonly idleTimeoutMs?: number
  /** Milliseconds for the whole exchange, the reading included; 0 for no limit. */
  readonly totalTimeoutMs?: number
  /** Bytes of body after which reading fails. */
  readonly maxBytes?: number
  /** Asked before each request, for the address itself and for every redirect: throws to refuse it. */
  readonly check?: (url: URL) => void
}
/** An answer whose body is read once, in one of the ways below. Not reading it to the end closes the connection. */
export interface OutboundResponse {
  /** The HTTP status. */
  readonly status: number
  /** Whether the status is 200 to 299. */
  readonly ok: boolean
  /** The address that answered, after redirects. */
  readonly url: string
  /** One header by its lower-case name. */
  header(name: string): string | undefined
  /** The body as it arrives. Ending the iteration early closes the connection. */
  chunks(): AsyncIterable<Uint8Array>
  /** The whole body as text, decoded as UTF-8. */
  text(): Promise<string>
  /** The whole body as parsed JSON. Rejects when it is none. */
  json(): Promise<unknown>
  /** The whole body as bytes. */
  bytes(): Promise<Uint8Array>
  /** A standard `Response`, for libraries that want one. */
  toResponse(): Response
}
/**
 * The only way out to the network. Private, loopback, link-local and metadata addresses are refused unless the
 * configuration permits them. Rejects with `Refusal('forbidden')` for a refused address, with `UpstreamFailure` when
 * the other side fails, and with the signal's reason on abort. Statuses of 400 and over are answers, not failures.
 */
export type Fetch = (url: string | URL, request?: OutboundRequest) => Promise<OutboundResponse>
