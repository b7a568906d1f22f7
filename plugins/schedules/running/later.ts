import type { Refusal } from 'svc/sdk'
import type { JobOutcome } from '../../queue/contract.ts'

const RETRY_SECS = 5

/** There is no room at the moment. */
export const later = ({ retryAfterSecs = RETRY_SECS }: Refusal): JobOutcome => ({
  outcome: 'postponed',
  afterMs: retryAfterSecs * 1000,
})
