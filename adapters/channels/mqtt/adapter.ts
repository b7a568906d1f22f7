import { defineAdapter } from 'svc/channels'
import { config } from './config.ts'
import { openMqtt, probeMqtt, SILENCE_MS } from './link.ts'

export default defineAdapter({
  config,
  capabilities: {
    dialect: 'plain',
    maxLength: 65_536,
    lengthUnit: 'bytes',
    idempotentSend: false,
    rate: { overall: { perSecond: 50, burst: 100 } },
  },
  silenceMs: SILENCE_MS,
  open: openMqtt,
  probe: probeMqtt,
})
