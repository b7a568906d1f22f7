import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'email',
  title: 'Email',
  category: 'messaging',
  description: 'A mailbox: mail comes over IMAP and is answered over SMTP.',
  setup: {
    icon: '@',
    difficulty: 'medium',
    minutes: 5,
    steps: [
      'Make a mailbox for the bot: what is in it already stays unread.',
      'Have the addresses of its IMAP and SMTP servers at hand, and its password, or one for apps.',
    ],
  },
  load: () => import('./adapter.ts'),
})
