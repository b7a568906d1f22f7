import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'webhook',
  title: 'Webhook',
  category: 'developer',
  description: 'Any program that sends and takes signed HTTP requests.',
  setup: {
    icon: '{}',
    difficulty: 'easy',
    minutes: 2,
    steps: [
      'Make up a secret of at least 16 characters, which signs requests in both directions.',
      'For answers, have an address of the other program that takes them.',
    ],
  },
  load: () => import('./adapter.ts'),
})
