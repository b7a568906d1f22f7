import { UpstreamFailure } from 'svc/sdk'
import type { UpstreamReason } from 'svc/sdk'

/** A failure of the SMTP server: 4xx may pass, 5xx stays. */
export function smtpFailure(error: unknown, server: string): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error
  const { code, status, message } = read(error)
  const fail = (reason: UpstreamReason, retry: 'never' | 'later'): UpstreamFailure =>
    new UpstreamFailure('email', `${server}: ${message}`, { reason, retry })
  if (code === 'EAUTH' && status >= 500) return fail('auth', 'never')
  if (status === 450 || status === 451) return fail('rate_limit', 'later')
  if (status >= 500) return fail('invalid_request', 'never')
  if (code === 'ETIMEDOUT') return fail('timeout', 'later')
  return fail(status >= 400 ? 'server_error' : 'network', 'later')
}

export function imapFailure(error: unknown, server: string): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error
  const { code, message, isRefused } = read(error)
  const isCertificate = /CERT|SSL|TLS/.test(code)
  return new UpstreamFailure('email', `${server}: ${message}`, {
    reason: isRefused ? 'auth' : 'network',
    retry: isRefused || isCertificate ? 'never' : 'later',
  })
}

function read(error: unknown) {
  const fields: object = error instanceof Error ? error : {}
  const text = (name: string): string => {
    const value: unknown = Reflect.get(fields, name)
    return typeof value === 'string' ? value : ''
  }
  return {
    code: text('code'),
    status: Number(Reflect.get(fields, 'responseCode')) || 0,
    // Of the server where there is one: the library says only that a command failed.
    message: text('responseText') || text('response') || text('message') || 'the connection failed',
    isRefused: Reflect.get(fields, 'authenticationFailed') === true,
  }
}
