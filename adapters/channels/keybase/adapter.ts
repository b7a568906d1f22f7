import { defineAdapter } from 'svc/channels'
import { KeybaseConfig } from './config.ts'
import { openKeybase, probeKeybase } from './session.ts'

export default defineAdapter({
  config: KeybaseConfig,
  capabilities: {
    // The signs are those of XEP-0393.
    dialect: 'xmpp',
    maxLength: 10_000,
    lengthUnit: 'bytes',
    // Each edit starts the program.
    edit: { minIntervalMs: 2000 },
    replies: true,
    reactions: true,
    idempotentSend: false,
    rate: { overall: { perSecond: 1, burst: 5 } },
  },
  open: openKeybase,
  probe: probeKeybase,
})
