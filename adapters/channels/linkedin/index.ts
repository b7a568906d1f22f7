import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'linkedin',
  title: 'LinkedIn',
  category: 'social',
  description: 'Comments on the posts of an organization on LinkedIn.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
