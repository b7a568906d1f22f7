import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'pumble',
  title: 'Pumble',
  category: 'enterprise',
  description: 'An app with a bot in channels and direct messages of a Pumble workspace.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
