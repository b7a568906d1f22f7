import * as v from 'valibot'
import { readJson } from 'svc/sdk'
import type { ApiAnswer, ApiError } from './api-failure.ts'

type Meaning = Omit<ApiError, 'message'>

const Failure = v.object({
  error: v.object({
    code: v.number(),
    error_subcode: v.nullish(v.number()),
    message: v.nullish(v.string(), ''),
    error_data: v.nullish(v.object({ details: v.nullish(v.string()) })),
  }),
})
/** Minutes until calls are allowed again, for each limit of each business. */
const Usage = v.record(
  v.string(),
  v.array(v.object({ estimated_time_to_regain_access: v.nullish(v.pipe(v.number(), v.minValue(0)), 0) })),
)

/** Codes of all products: https://developers.facebook.com/docs/graph-api/guides/error-handling */
const COMMON: ReadonlyMap<number, Meaning> = new Map<number, Meaning>([
  [0, { reason: 'auth', retry: 'never' }],
  [102, { reason: 'auth', retry: 'never' }],
  [190, { reason: 'auth', retry: 'never' }],
  // The account is blocked for breaking a policy.
  [368, { reason: 'auth', retry: 'never' }],
  [1, { reason: 'server_error', retry: 'later' }],
  [2, { reason: 'overloaded', retry: 'later' }],
  // Limits of the app, of the person, of the page, and of the calls of one kind.
  [4, { reason: 'rate_limit', retry: 'later' }],
  [17, { reason: 'rate_limit', retry: 'later' }],
  [32, { reason: 'rate_limit', retry: 'later' }],
  [613, { reason: 'rate_limit', retry: 'later' }],
])

/**
 * Explains a failed request to the Graph API of Meta, whose status says little. `meanings` has the codes of the
 * product; they go before those that all products share. A key may have a subcode, as in `10:2018278`.
 */
export function findGraphError(
  { body, header }: ApiAnswer,
  meanings: Readonly<Record<string, Meaning>>,
): ApiError | undefined {
  const parsed = v.safeParse(Failure, body)
  if (!parsed.success) return undefined
  const { code, error_subcode: subcode, message, error_data: data } = parsed.output.error
  const meaning = meanings[`${code}:${subcode}`] ?? meanings[String(code)] ?? COMMON.get(code)
  return {
    message: data?.details ? `${message}: ${data.details}` : message,
    ...(meaning?.reason === 'rate_limit' && { retryAfterSecs: pauseOf(header('x-business-use-case-usage')) }),
    ...meaning,
  }
}

/** The longest pause that a header of limits names, in seconds. */
function pauseOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined
  let usage: unknown
  try {
    usage = readJson(header)
  } catch {
    // What it means without the header is known: the limit was reached.
    return undefined
  }
  const parsed = v.safeParse(Usage, usage)
  if (!parsed.success) return undefined
  const minutes = Object.values(parsed.output).flatMap((limits) =>
    limits.map(({ estimated_time_to_regain_access: time }) => time),
  )
  return Math.max(0, ...minutes) * 60 || undefined
}
