import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'guilded',
  title: 'Guilded',
  category: 'developer',
  description: 'Closed in December 2025. For servers that speak its protocol.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
