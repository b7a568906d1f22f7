import type { ErrorCode } from './error.ts'

/** `flat` is `{error: message}`, `coded` is `{error: {code, message, details, request_id}}` (Interface 7, formats 1 and 2). */
export type BodyFormat = 'flat' | 'coded'
export interface CodeRow {
  readonly status: number
  readonly format: BodyFormat
  readonly meaning: string
}

/**
 * Decision: the interface names two body formats and only two uses of the flat one (the key-value 404 and 429). A 401 is flat
 * too, because existing clients of compatible services read its text from `error`. Everything else is coded.
 */
export const codes: Readonly<Record<string, CodeRow>> = {
  invalid_request: { status: 400, format: 'coded', meaning: 'malformed request' },
  unauthorized: { status: 401, format: 'flat', meaning: 'authentication failed' },
  forbidden: { status: 403, format: 'coded', meaning: 'not allowed for this caller' },
  not_found: { status: 404, format: 'coded', meaning: 'no such path or resource' },
  key_not_found: { status: 404, format: 'flat', meaning: 'the key does not exist' },
  agent_not_found: { status: 404, format: 'coded', meaning: 'agent does not exist' },
  method_not_allowed: { status: 405, format: 'coded', meaning: 'the path exists, the method does not' },
  conflict: { status: 409, format: 'coded', meaning: 'the present state does not allow it' },
  payload_too_large: { status: 413, format: 'coded', meaning: 'the body is larger than allowed' },
  rate_limit: { status: 429, format: 'flat', meaning: 'rate limit exceeded' },
  internal_error: { status: 500, format: 'coded', meaning: 'internal error' },
  service_unavailable: { status: 503, format: 'coded', meaning: 'service unavailable' },
}
const missing: CodeRow = { status: 404, format: 'coded', meaning: 'does not exist' }
const defect: CodeRow = { status: 500, format: 'coded', meaning: 'internal error' }

/** The row of a code; every other `…_not_found` is a coded 404. */
export function rowOf(code: ErrorCode): CodeRow {
  return Object.hasOwn(codes, code) ? (codes[code] ?? defect) : code.endsWith('_not_found') ? missing : defect
}
