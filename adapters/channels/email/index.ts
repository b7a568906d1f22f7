import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'email',
  title: 'Email',
  category: 'messaging',
  description: 'A mailbox: mail comes over IMAP and is answered over SMTP.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
