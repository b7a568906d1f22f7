import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'revolt',
  title: 'Revolt',
  category: 'developer',
  description: 'A bot in the servers, groups and direct messages of Revolt, which is Stoat now.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
