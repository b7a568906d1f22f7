import { defineAdapter } from 'svc/channels'
import { config } from './config.ts'
import { openEmail, probeEmail } from './link.ts'

export default defineAdapter({
  config,
  capabilities: {
    dialect: 'email-html',
    maxLength: 1_000_000,
    lengthUnit: 'characters',
    threads: true,
    replies: true,
    attachments: { inbound: true, outbound: true, maxBytes: 20_971_520 },
    // Most servers show a mail with a known Message-ID once, but none has to.
    idempotentSend: false,
    rate: { overall: { perSecond: 1, burst: 10 } },
  },
  /** Longer than the longest time between two polls. */
  silenceMs: 360_000,
  open: openEmail,
  probe: probeEmail,
})
