import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'flock',
  title: 'Flock',
  category: 'enterprise',
  description: 'A bot in direct messages of Flock, and a slash command in its channels.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
