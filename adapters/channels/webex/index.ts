import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'webex',
  title: 'Webex',
  category: 'enterprise',
  description: 'A bot in spaces and direct chats of Webex.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
