import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'webhook',
  title: 'Webhook',
  category: 'developer',
  description: 'Any program that sends and takes signed HTTP requests.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
