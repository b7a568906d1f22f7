import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'viber',
  title: 'Viber',
  category: 'messaging',
  description: 'A bot account of Viber in chats with people who subscribed to it.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
