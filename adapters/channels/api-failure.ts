import { omitUndefined, readRetryAfter, shortened, UpstreamFailure } from 'svc/sdk'
import type { UpstreamReason } from 'svc/sdk'

/** An answer of a platform, as far as an error in it can be told. */
export interface ApiAnswer {
  readonly status: number
  /** Whether the status is 200 to 299. */
  readonly ok: boolean
  /** The body as JSON; its text when it is none. */
  readonly body: unknown
  /** One header by its lower-case name. */
  header(name: string): string | undefined
}

/** What a platform says about a failure. What is absent follows from the status. */
export interface ApiError {
  /** The platform's own words. */
  readonly message?: string | undefined
  readonly reason?: UpstreamReason | undefined
  readonly retry?: 'later' | 'never' | undefined
  /** Seconds to wait, where the platform says so in another place than `Retry-After`. */
  readonly retryAfterSecs?: number | undefined
}

/**
 * Finds the error in an answer: explains one with an error status, and finds errors in answers of status 200. Returns
 * `undefined` when there is nothing to add: the status decides then.
 */
export type ErrorFinder = (answer: ApiAnswer) => ApiError | undefined

const PASSING: ReadonlySet<UpstreamReason> = new Set(['rate_limit', 'overloaded', 'server_error', 'timeout', 'network'])

/**
 * What a status means by itself. 403 is not `auth`: on chat platforms it usually says that this chat is closed to the
 * bot, and the next one is not.
 */
export function reasonOfStatus(status: number): UpstreamReason {
  if (status === 401) return 'auth'
  if (status === 404 || status === 410) return 'not_found'
  if (status === 408 || status === 425 || status === 504) return 'timeout'
  if (status === 429) return 'rate_limit'
  if (status === 503) return 'overloaded'
  return status >= 500 ? 'server_error' : 'invalid_request'
}

/** Removes something: what is gone already is a success. */
export async function ignoreMissing(work: Promise<unknown>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!(error instanceof UpstreamFailure) || error.reason !== 'not_found') throw error
  }
}

/**
 * What was asked for, or `undefined` for what is gone or closed to the bot: anybody can remove what they wrote, or the
 * bot from a chat, at any moment. Throws what may pass, and what concerns the credentials.
 */
export async function unlessRefused<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof UpstreamFailure) || error.retry === 'later' || error.reason === 'auth') throw error
    return undefined
  }
}

/** The failure that an answer means. `now` is in milliseconds, for a `Retry-After` that is a date. */
export function toFailure(system: string, answer: ApiAnswer, error: ApiError, now: number): UpstreamFailure {
  const reason = error.reason ?? reasonOfStatus(answer.status)
  const retry = error.retry ?? (PASSING.has(reason) ? 'later' : 'never')
  const text = shortened(error.message ?? (typeof answer.body === 'string' ? answer.body : ''))
  const hint =
    error.retryAfterSecs ?? readRetryAfter(answer.header('retry-after'), answer.header('retry-after-ms'), now)
  return new UpstreamFailure(
    system,
    `${system} answered ${answer.status}${text && `: ${text}`}`,
    omitUndefined({ reason, retry, retryAfterSecs: retry === 'later' ? hint : undefined }),
  )
}
