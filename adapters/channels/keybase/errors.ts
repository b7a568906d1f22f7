import { shortened, UpstreamFailure } from 'svc/sdk'
import type { UpstreamReason } from 'svc/sdk'

/** What passes. Keybase documents no numbers of errors, and its words are those of its own code. */
const PASSING = /offline|network|timeout|timed out|deadline|connection|EOF|i\/o|temporar/i
const TOO_MANY = /rate.?limit/i
const GONE = /deleted|not found|does not exist|no such/i
const SIGNED_OUT = /login required|not logged in|no device|device .*revoked|logged out/i

/** The failure that the program describes with these words. */
export function failureOf(words: string, what: string): UpstreamFailure {
  const [reason, retry] = meaningOf(words)
  return keybaseFailure(`${what}: ${shortened(words.trim()) || 'keybase says nothing'}`, reason, retry)
}

function meaningOf(words: string): readonly [UpstreamReason, 'never' | 'later'] {
  if (TOO_MANY.test(words)) return ['rate_limit', 'later']
  if (SIGNED_OUT.test(words)) return ['auth', 'never']
  if (GONE.test(words)) return ['not_found', 'never']
  return PASSING.test(words) ? ['network', 'later'] : ['invalid_request', 'never']
}

/** Why somebody cannot be signed in: the paper key is wrong, unless it passes. */
export function signInFailure(words: string): UpstreamFailure {
  const { reason, message } = failureOf(words, 'keybase did not sign in')
  return reason === 'network' || reason === 'rate_limit'
    ? keybaseFailure(message, reason, 'later')
    : keybaseFailure(message, 'auth', 'never')
}

export function keybaseFailure(message: string, reason: UpstreamReason, retry: 'never' | 'later'): UpstreamFailure {
  return new UpstreamFailure('keybase', message, { reason, retry })
}
