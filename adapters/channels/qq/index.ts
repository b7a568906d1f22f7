import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'qq',
  title: 'QQ',
  category: 'messaging',
  description: 'A bot of the QQ open platform in private chats, groups and channels.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
