import { defineError } from 'svc/sdk'

/** API facts 4.8: `{error}`. */
export const a2aUnreachable = defineError('a2a_agent_failed', {
  status: 502,
  format: 'flat',
  meaning: 'the other agent cannot be reached, or its answer cannot be used',
})
