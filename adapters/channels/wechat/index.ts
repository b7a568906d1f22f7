import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'wechat',
  title: 'WeChat',
  category: 'messaging',
  description: 'A bot of a WeChat account, linked with a QR code, or an official account.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
