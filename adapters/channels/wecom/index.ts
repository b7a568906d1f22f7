import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'wecom',
  title: 'WeCom',
  category: 'enterprise',
  description: 'An intelligent robot of WeCom over a long connection, or an application with a callback.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
