import { defineError } from 'svc/sdk'

export const hubFailed = defineError('hub_failed', {
  status: 502,
  format: 'coded',
  meaning: 'a hub of skills could not be reached or understood',
})
