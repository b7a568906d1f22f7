import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'teams',
  title: 'Microsoft Teams',
  category: 'enterprise',
  description: 'A bot in personal chats, group chats and channels of Microsoft Teams.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
