import { defineAdapter } from 'svc/channels'
import { config } from './config.ts'
import { openWebhook, probeCallback } from './link.ts'

export default defineAdapter({
  config,
  capabilities: {
    dialect: 'markdown',
    maxLength: 65_535,
    lengthUnit: 'utf16',
    threads: true,
    replies: true,
    // The other side gets the same `message_id` and `Idempotency-Key` with every attempt.
    idempotentSend: true,
    rate: { overall: { perSecond: 1000, burst: 1000 } },
  },
  open: openWebhook,
  probe: probeCallback,
})
