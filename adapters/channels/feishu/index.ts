import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'feishu',
  title: 'Feishu',
  category: 'enterprise',
  description: 'An app of Feishu or Lark in chats and threads, over a long connection or a webhook.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
