import { defineAdapter } from 'svc/channels'
import { config } from './config.ts'
import { MAX_TEXT_BYTES } from './encode.ts'
import { BURST, INTERVAL_MS } from './flood.ts'
import { openIrc, probeIrc, SILENCE_MS } from './link.ts'

export default defineAdapter({
  config,
  capabilities: {
    dialect: 'irc',
    maxLength: MAX_TEXT_BYTES,
    lengthUnit: 'bytes',
    // Where the server passes tags on.
    typing: { repeatMs: 4000 },
    idempotentSend: false,
    rate: { overall: { perSecond: 1000 / INTERVAL_MS, burst: BURST } },
  },
  silenceMs: SILENCE_MS,
  open: openIrc,
  probe: probeIrc,
})
