import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'zulip',
  title: 'Zulip',
  category: 'enterprise',
  description: 'A bot in channels, topics and direct messages of Zulip.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
