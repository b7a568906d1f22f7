import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'signal',
  title: 'Signal',
  category: 'messaging',
  description: 'A phone number of Signal that signal-cli serves, in chats and groups.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
