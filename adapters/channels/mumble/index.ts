import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'mumble',
  title: 'Mumble',
  category: 'messaging',
  description: 'A user of a Mumble server who reads and writes text messages.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
