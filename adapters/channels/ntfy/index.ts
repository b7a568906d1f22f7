import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'ntfy',
  title: 'ntfy',
  category: 'notification',
  description: 'A topic of ntfy.sh or of a server of your own.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
