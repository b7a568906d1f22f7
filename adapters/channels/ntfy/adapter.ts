import { defineAdapter } from 'svc/channels'
import { config } from './config.ts'
import { openNtfy, probeNtfy } from './link.ts'

export default defineAdapter({
  config,
  capabilities: {
    dialect: 'markdown',
    // Longer messages become files.
    maxLength: 4096,
    lengthUnit: 'bytes',
    attachments: { inbound: true, outbound: true, maxBytes: 15_000_000 },
    idempotentSend: false,
    rate: { overall: { perSecond: 0.2, burst: 60 } },
  },
  // Two signs of life, which come every 45 seconds.
  silenceMs: 100_000,
  open: openNtfy,
  probe: probeNtfy,
})
