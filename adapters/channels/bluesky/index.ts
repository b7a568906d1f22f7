import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'bluesky',
  title: 'Bluesky',
  category: 'social',
  description: 'Mentions of an account of Bluesky, and replies to its posts.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
