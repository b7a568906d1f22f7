import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'google_chat',
  title: 'Google Chat',
  category: 'enterprise',
  description: 'A Chat app in spaces, group chats and direct messages of Google Chat.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
