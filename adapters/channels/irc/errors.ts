import { UpstreamFailure } from 'svc/sdk'
import type { UpstreamReason } from 'svc/sdk'
import type { IrcLine } from './wire.ts'

/** Answers that end the registration, or that refuse a message. */
const MEANINGS: Readonly<Record<string, readonly [UpstreamReason, 'never' | 'later']>> = {
  263: ['rate_limit', 'later'],
  401: ['not_found', 'never'],
  403: ['not_found', 'never'],
  404: ['invalid_request', 'never'],
  407: ['invalid_request', 'never'],
  412: ['invalid_request', 'never'],
  432: ['invalid_request', 'never'],
  437: ['overloaded', 'later'],
  439: ['rate_limit', 'later'],
  464: ['auth', 'never'],
  465: ['auth', 'never'],
  902: ['auth', 'never'],
  904: ['auth', 'never'],
  905: ['auth', 'never'],
  906: ['auth', 'never'],
  908: ['auth', 'never'],
}

/** The failure that an answer reports; `undefined` when it reports none. */
export function failureOf(line: IrcLine, server: string): UpstreamFailure | undefined {
  const meaning = MEANINGS[line.command]
  if (!meaning) return undefined
  return ircFailure(`${server}: ${line.params.at(-1) ?? ''} (${line.command})`, ...meaning)
}

export function ircFailure(message: string, reason: UpstreamReason, retry: 'never' | 'later'): UpstreamFailure {
  return new UpstreamFailure('irc', message, { reason, retry })
}
