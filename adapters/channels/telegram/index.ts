import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'telegram',
  title: 'Telegram',
  category: 'messaging',
  description: 'A Telegram bot, by long polling or by webhook.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
