import type { ErrorObject } from 'openai/resources/shared'
import type { Problem } from 'svc/sdk'

const types: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'invalid_request_error',
  405: 'invalid_request_error',
  413: 'invalid_request_error',
  429: 'rate_limit_error',
}
const codes: Readonly<Record<string, string>> = { unauthorized: 'invalid_api_key', rate_limit: 'rate_limit_exceeded' }

/** OpenAI's shape of an error, by which its clients choose the class to throw. */
export function toOpenAiError({ status, code, message, details }: Problem): { readonly error: ErrorObject } {
  const { code: own, issues } = details
  const param = details['param'] ?? (Array.isArray(issues) ? issues[0]?.path : undefined)
  return {
    error: {
      message,
      type: types[status] ?? 'server_error',
      param: typeof param === 'string' ? param : null,
      code: typeof own === 'string' ? own : (codes[code] ?? code),
    },
  }
}
