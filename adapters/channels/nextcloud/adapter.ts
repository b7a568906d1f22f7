import { defineAdapter } from 'svc/channels'
import { openBot, probeBot } from './bot.ts'
import { NextcloudConfig } from './config.ts'
import { openUser, probeUser } from './user.ts'

export default defineAdapter({
  config: NextcloudConfig,
  // A bot edits nothing and has no files: its connection says so.
  capabilities: {
    dialect: 'markdown',
    // 32,000; some are left for the signs that keep mentions from notifying everybody.
    maxLength: 31_900,
    lengthUnit: 'characters',
    edit: { minIntervalMs: 2000 },
    replies: true,
    reactions: true,
    attachments: { inbound: true, outbound: true, maxBytes: 100_000_000 },
    // The reference of a message is stored, but a second one with the same is taken.
    idempotentSend: false,
    rate: { overall: { perSecond: 5, burst: 10 } },
  },
  // Two checks of a bot; an account asks all the time.
  silenceMs: 150_000,
  open: (link) => (link.config.mode === 'bot' ? openBot(link) : openUser(link)),
  probe: (link) => (link.config.mode === 'bot' ? probeBot(link) : probeUser(link)),
})
