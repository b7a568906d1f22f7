import { defineAdapter } from 'svc/channels'
import { openApp, probeApp } from './app.ts'
import { openBot, probeBot } from './bot.ts'
import { WeComConfig } from './config.ts'

export default defineAdapter({
  config: WeComConfig,
  capabilities: {
    dialect: 'markdown',
    // What an application may send; a robot may send ten times as much.
    maxLength: 2048,
    lengthUnit: 'bytes',
    attachments: { inbound: true, outbound: true, maxBytes: 10_000_000 },
    idempotentSend: false,
    // 30 messages a minute in one chat.
    rate: { perChat: { perSecond: 0.5, burst: 10 }, overall: { perSecond: 10, burst: 20 } },
  },
  // Three signs of life.
  silenceMs: 90_000,
  open: (link) => (link.config.mode === 'app' ? openApp(link) : openBot(link)),
  probe: (link) => (link.config.mode === 'app' ? probeApp(link) : probeBot(link)),
})
