import type { ErrorCode } from './error.ts'

/**
 * `flat` is `{error: message}`, `coded` is `{error: {code, message, details, request_id}}` (Interface 7, formats 1 and
 * 2).
 */
export type BodyFormat = 'flat' | 'coded'
export interface CodeRow {
  /** The HTTP status of the answer. */
  readonly status: number
  /** The format of the body. */
  readonly format: BodyFormat
  /** What it means, in a few words, for the OpenAPI document. */
  readonly meaning: string
}
/**
 * An error of a plugin's own: `errors` of its routes name it for the OpenAPI document, and its refusals are made of it.
 */
export interface ErrorDefinition extends CodeRow {
  /** What clients compare, in snake_case, such as `greeting_not_found`. */
  readonly code: ErrorCode
}
/** An error of a plugin's own: routes name it in `errors`, and `new Refusal(error, message)` throws it. */
export function defineError(code: ErrorCode, row: CodeRow): ErrorDefinition {
  return { code, ...row }
}

/**
 * Decision: the interface names two body formats and only two uses of the flat one (429, and the 404 of one plugin). A
 * 401 is flat too, because existing clients of compatible services read its text from `error`. Everything else is
 * coded.
 */
const codes: Readonly<Record<string, CodeRow>> = {
  invalid_request: { status: 400, format: 'coded', meaning: 'malformed request' },
  unauthorized: { status: 401, format: 'flat', meaning: 'authentication failed' },
  forbidden: { status: 403, format: 'coded', meaning: 'not allowed for this caller' },
  not_found: { status: 404, format: 'coded', meaning: 'no such path or resource' },
  method_not_allowed: { status: 405, format: 'coded', meaning: 'the path exists, the method does not' },
  conflict: { status: 409, format: 'coded', meaning: 'the present state does not allow it' },
  payload_too_large: { status: 413, format: 'coded', meaning: 'the body is larger than allowed' },
  rate_limit: { status: 429, format: 'flat', meaning: 'rate limit exceeded' },
  internal_error: { status: 500, format: 'coded', meaning: 'internal error' },
  service_unavailable: { status: 503, format: 'coded', meaning: 'service unavailable' },
}
const missing: CodeRow = { status: 404, format: 'coded', meaning: 'does not exist' }
const defect: CodeRow = { status: 500, format: 'coded', meaning: 'internal error' }

/** The row of an error; a `…_not_found` that nobody defines is a coded 404. */
export function rowOf(error: ErrorCode | ErrorDefinition): CodeRow {
  if (typeof error !== 'string') return error
  const code = error
  return Object.hasOwn(codes, code) ? (codes[code] ?? defect) : code.endsWith('_not_found') ? missing : defect
}
