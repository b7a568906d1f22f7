import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'rocketchat',
  title: 'Rocket.Chat',
  category: 'enterprise',
  description: 'A bot account in the rooms and direct messages of a Rocket.Chat server.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
