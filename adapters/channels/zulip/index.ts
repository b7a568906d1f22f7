import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'zulip',
  title: 'Zulip',
  category: 'enterprise',
  description: 'A bot in channels, topics and direct messages of Zulip.',
  setup: {
    difficulty: 'easy',
    minutes: 3,
    steps: [
      'In the settings of Zulip, under Bots, add a bot of the type "Generic bot".',
      'Copy its email address and its API key.',
      'Subscribe it to the channels where it should answer.',
    ],
  },
  load: () => import('./adapter.ts'),
})
