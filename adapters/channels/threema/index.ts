import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'threema',
  title: 'Threema',
  category: 'messaging',
  description: 'An id of Threema Gateway with end-to-end encryption.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
