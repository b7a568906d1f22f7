import { defineAdapter } from 'svc/channels'
import { config } from './config.ts'
import { MAX_LENGTH, openMumble, probeMumble, SILENCE_MS } from './session.ts'

export default defineAdapter({
  config,
  capabilities: {
    dialect: 'matrix-html',
    maxLength: MAX_LENGTH,
    lengthUnit: 'utf16',
    idempotentSend: false,
    // The server drops what comes faster and says nothing: five at once, then one in a second, which it counts in whole
    // seconds. Entering a channel counts, too.
    rate: { overall: { perSecond: 0.5, burst: 3 } },
  },
  silenceMs: SILENCE_MS,
  open: openMumble,
  probe: probeMumble,
})
