import type { ChannelSetup } from 'svc/channels'

export default {
  icon: '@',
  difficulty: 'medium',
  minutes: 5,
  steps: [
    'Make a mailbox for the bot: what is in it already stays unread.',
    'Have the addresses of its IMAP and SMTP servers at hand, and its password, or one for apps.',
  ],
} satisfies ChannelSetup
