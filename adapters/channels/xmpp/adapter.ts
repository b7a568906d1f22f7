import { defineAdapter } from 'svc/channels'
import { config } from './config.ts'
import { openXmpp, probeXmpp, SILENCE_MS } from './link.ts'

export default defineAdapter({
  config,
  capabilities: {
    dialect: 'xmpp',
    maxLength: 10_000,
    lengthUnit: 'characters',
    edit: { minIntervalMs: 1500 },
    typing: { repeatMs: 20_000 },
    replies: true,
    attachments: { inbound: true, outbound: true, maxBytes: 10_000_000 },
    idempotentSend: false,
    rate: { overall: { perSecond: 5, burst: 20 } },
  },
  silenceMs: SILENCE_MS,
  open: openXmpp,
  probe: probeXmpp,
})
