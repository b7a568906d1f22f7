import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { Element } from './wire.ts'

/** An error that answers a message. */
export function refusalOf(stanza: Element, server: string): UpstreamFailure {
  const error = stanza.getChild('error')
  const condition = error?.children.find((child) => typeof child !== 'string' && child.name !== 'text')
  const name = condition === undefined || typeof condition === 'string' ? 'error' : condition.name
  const text = error?.getChildText('text')
  const isWait = error?.attrs['type'] === 'wait'
  return new UpstreamFailure('xmpp', `${server}: ${text ?? name}`, {
    reason: isWait ? 'overloaded' : /not-found|gone|unavailable/.test(name) ? 'not_found' : 'invalid_request',
    retry: isWait ? 'later' : 'never',
  })
}

export function failureOf(error: unknown, server: string): UpstreamFailure {
  if (error instanceof UpstreamFailure) return error
  // Such as an address that the daemon may not reach.
  if (error instanceof Refusal)
    return new UpstreamFailure('xmpp', error.message, {
      reason: 'invalid_request',
      retry: error.code === 'forbidden' ? 'never' : 'later',
    })
  const [name, condition, message] = ['name', 'condition', 'message'].map((field) =>
    String(error instanceof Error ? (Reflect.get(error, field) ?? '') : ''),
  )
  const isRefused = name === 'SASLError' && condition !== 'temporary-auth-failure'
  // Another connection with the same resource would take turns with this one.
  const isConflict = name === 'StreamError' && condition === 'conflict'
  return new UpstreamFailure('xmpp', `${server}: ${condition || message || 'the connection failed'}`, {
    reason: isRefused ? 'auth' : isConflict ? 'invalid_request' : name === 'TimeoutError' ? 'timeout' : 'network',
    retry: isRefused || isConflict ? 'never' : 'later',
  })
}
