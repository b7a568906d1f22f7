import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'nextcloud',
  title: 'Nextcloud Talk',
  category: 'enterprise',
  description: 'A bot, or an account, in conversations of Nextcloud Talk.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
