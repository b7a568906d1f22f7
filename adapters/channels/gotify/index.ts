import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'gotify',
  title: 'Gotify',
  category: 'notification',
  description: 'Messages of the applications of a Gotify server.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
