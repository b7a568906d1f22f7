import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'dingtalk',
  title: 'DingTalk',
  category: 'enterprise',
  description: 'A robot of DingTalk in groups and direct chats, over Stream mode or a webhook.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
