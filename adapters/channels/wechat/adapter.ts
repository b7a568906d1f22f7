import { defineAdapter } from 'svc/channels'
import { openAccount, probeAccount } from './account.ts'
import { openBot, probeBot } from './bot.ts'
import { signInBot } from './bot-sign-in.ts'
import { WeChatConfig } from './config.ts'

export default defineAdapter({
  config: WeChatConfig,
  capabilities: {
    dialect: 'plain',
    // Of an official account; a bot could have more.
    maxLength: 2048,
    lengthUnit: 'bytes',
    typing: { repeatMs: 5000 },
    attachments: { inbound: true, outbound: true, maxBytes: 25_000_000 },
    // Tencent does not say that an id of a message is looked at.
    idempotentSend: false,
    rate: { perChat: { perSecond: 1, burst: 3 }, overall: { perSecond: 5, burst: 10 } },
  },
  // Two polls of 100 seconds at most.
  silenceMs: 220_000,
  open: (link) => (link.config.mode === 'bot' ? openBot(link) : openAccount(link)),
  probe: (link) => (link.config.mode === 'bot' ? probeBot(link) : probeAccount(link)),
  usesSignIn: ({ mode }) => mode === 'bot',
  signIn: (link) => signInBot(link),
})
