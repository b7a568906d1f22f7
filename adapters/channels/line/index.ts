import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'line',
  title: 'LINE',
  category: 'messaging',
  description: 'An official account of LINE in direct and group chats, by the Messaging API.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
