import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'nostr',
  title: 'Nostr',
  category: 'messaging',
  description: 'Private direct messages of Nostr, over relays of your choice.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
