import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'messenger',
  title: 'Messenger',
  category: 'messaging',
  description: 'A page on Facebook that people write to with Messenger.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
