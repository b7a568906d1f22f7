import { defineAdapter } from 'svc/channels'
import { openCloud, probeCloud } from './cloud.ts'
import { config } from './config.ts'
import { openWeb, probeWeb } from './web.ts'
import { signInWeb } from './web-sign-in.ts'

export default defineAdapter({
  config,
  capabilities: {
    dialect: 'whatsapp',
    maxLength: 4096,
    lengthUnit: 'utf16',
    // Shown for 25 seconds, or until the answer.
    typing: { repeatMs: 20_000 },
    replies: true,
    reactions: true,
    buttons: true,
    attachments: { inbound: true, outbound: true, maxBytes: 16_000_000 },
    idempotentSend: false,
    // One message in six seconds to one person, with bursts.
    rate: { perChat: { perSecond: 0.2, burst: 10 }, overall: { perSecond: 80, burst: 80 } },
  },
  // However the number is written.
  matchesSender: (entry, { id }) => entry.replaceAll(/\D/g, '') === id,
  open: (link) => (link.config.mode === 'web' ? openWeb(link) : openCloud(link)),
  probe: (link) => (link.config.mode === 'web' ? probeWeb(link) : probeCloud(link)),
  usesSignIn: ({ mode }) => mode === 'web',
  signIn: (link) => signInWeb(link),
})
