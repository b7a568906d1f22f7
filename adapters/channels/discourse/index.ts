import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'discourse',
  title: 'Discourse',
  category: 'developer',
  description: 'An account in the topics and personal messages of a Discourse forum.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
