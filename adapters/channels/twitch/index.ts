import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'twitch',
  title: 'Twitch',
  category: 'social',
  description: 'The chat of channels on Twitch.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
