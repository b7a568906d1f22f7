import type { ErrorDefinition } from './codes.ts'

/** Nobody can put work off for longer, whatever pause a platform names. */
const MAX_RETRY_AFTER_SECS = 86_400
const boundPause = (secs: number | undefined): number | undefined =>
  secs === undefined || Number.isNaN(secs) ? undefined : Math.min(secs, MAX_RETRY_AFTER_SECS)

/** What a caller may be told went wrong. The table in `codes.ts` gives each its status and body format. */
export type ErrorCode =
  | 'invalid_request'
  | 'unauthorized'
  | 'forbidden'
  | 'rate_limit'
  | `${string}_not_found`
  | `${string}_failed`
  | 'not_found'
  | 'method_not_allowed'
  | 'conflict'
  | 'payload_too_large'
  | 'service_unavailable'
  | 'internal_error'

/** What a `Refusal` has beside its code and message. */
export interface ErrorOptions {
  /** Shown to the caller beside the message (Interface 7, format 2). Never a path, a stack or SQL. */
  readonly details?: Readonly<Record<string, unknown>>
  /** The failure behind it, for the log only. */
  readonly cause?: unknown
  /** Seconds for the `Retry-After` header. */
  readonly retryAfterSecs?: number | undefined
}

/**
 * An outcome the caller is meant to see. Anything else that is thrown is a defect and answers 500 with a fixed text.
 * Across plugins compare `code`; `instanceof Refusal` holds because plugins get this class from `svc/sdk`.
 */
export class Refusal extends Error {
  /** Always `Refusal`. */
  override readonly name = 'Refusal'
  /** What clients compare. */
  readonly code: ErrorCode
  /** Where a plugin defined the error. */
  readonly definition: ErrorDefinition | undefined
  /** Facts shown to the caller beside the message; empty when there are none. */
  readonly details: Readonly<Record<string, unknown>>
  /** Seconds for the `Retry-After` header; `undefined` sends none. */
  readonly retryAfterSecs: number | undefined
  constructor(error: ErrorCode | ErrorDefinition, message: string, options: ErrorOptions = {}) {
    super(message, { cause: options.cause })
    this.definition = typeof error === 'string' ? undefined : error
    this.code = typeof error === 'string' ? error : error.code
    this.details = options.details ?? {}
    this.retryAfterSecs = options.retryAfterSecs
  }
}

/** Why an upstream system failed, as far as it can be told apart. Decides retry, fallback and the text shown. */
export type UpstreamReason =
  | 'rate_limit'
  | 'auth'
  | 'overloaded'
  | 'server_error'
  | 'network'
  | 'timeout'
  | 'cut'
  | 'malformed'
  | 'context_length'
  | 'content_filter'
  | 'invalid_request'
  | 'not_found'

/** What is known of the failure of another system. */
export interface UpstreamOptions {
  /** Why it failed, as far as it can be told apart. */
  readonly reason: UpstreamReason
  /** `later`: the same call may work after a pause. `never`: it will fail again as it is. */
  readonly retry: 'never' | 'later'
  /** The pause the upstream asked for, in seconds. */
  readonly retryAfterSecs?: number
  /** The failure behind it, for the log only. */
  readonly cause?: unknown
}

/** A system we depend on failed. Whoever called it decides whether to try again. */
export class UpstreamFailure extends Error {
  /** Always `UpstreamFailure`. */
  override readonly name = 'UpstreamFailure'
  /** Name of what failed, such as `openai`. */
  readonly system: string
  /** Why it failed, as far as it can be told apart. */
  readonly reason: UpstreamReason
  /** `later`: the same call may work after a pause. `never`: it will fail again as it is. */
  readonly retry: 'never' | 'later'
  /** The pause the upstream asked for, in seconds, at most a day; `undefined` when it named none. */
  readonly retryAfterSecs: number | undefined
  constructor(system: string, message: string, options: UpstreamOptions) {
    super(message, { cause: options.cause })
    this.system = system
    this.reason = options.reason
    this.retry = options.retry
    this.retryAfterSecs = boundPause(options.retryAfterSecs)
  }
}
