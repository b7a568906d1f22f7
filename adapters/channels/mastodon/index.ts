import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'mastodon',
  title: 'Mastodon',
  category: 'social',
  description: 'Posts that mention an account, on any instance.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
