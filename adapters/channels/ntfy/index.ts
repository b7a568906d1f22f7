import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'ntfy',
  title: 'ntfy',
  category: 'notification',
  description: 'A topic of ntfy.sh or of a server of your own.',
  setup: {
    difficulty: 'easy',
    minutes: 1,
    steps: [
      'Choose a topic that nobody guesses, or reserve one and make an access token.',
      'Subscribe to it in the app. The topic itself goes into "Allowed users".',
    ],
  },
  load: () => import('./adapter.ts'),
})
