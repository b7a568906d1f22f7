import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'irc',
  title: 'IRC',
  category: 'messaging',
  description: 'A bot in the channels and private messages of an IRC network.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
