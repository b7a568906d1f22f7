import { defineAdapter } from 'svc/channels'
import { config } from './config.ts'
import { openTelegram, probeTelegram } from './link.ts'

export default defineAdapter({
  config,
  capabilities: {
    dialect: 'telegram-html',
    maxLength: 4096,
    lengthUnit: 'utf16',
    edit: { minIntervalMs: 1200 },
    // Telegram shows it for five seconds.
    typing: { repeatMs: 4500 },
    threads: true,
    replies: true,
    reactions: true,
    buttons: true,
    // Files of up to 20 MB can be downloaded, of up to 50 MB uploaded.
    attachments: { inbound: true, outbound: true, maxBytes: 20_000_000 },
    idempotentSend: false,
    rate: { perChat: { perSecond: 1, burst: 3 }, overall: { perSecond: 30, burst: 30 } },
  },
  // A poll of 50 seconds, and what it may be late.
  silenceMs: 90_000,
  open: openTelegram,
  probe: probeTelegram,
})
