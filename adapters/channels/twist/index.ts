import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'twist',
  title: 'Twist',
  category: 'enterprise',
  description: 'An integration in the threads and conversations of a Twist workspace.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
