import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'reddit',
  title: 'Reddit',
  category: 'social',
  description: 'Comments and private messages of an account of Reddit.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
