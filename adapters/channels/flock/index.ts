import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'flock',
  title: 'Flock',
  category: 'enterprise',
  description: 'A bot in direct messages of Flock, and a slash command in its channels.',
  setup: {
    difficulty: 'medium',
    minutes: 10,
    steps: [
      'On dev.flock.com make an app: its page shows the App ID and the App Secret.',
      'Under "Advanced Information" enable the bot, and copy its token.',
      'There, enter the address of the webhook as the event listener URL.',
      'For channels add a slash command that is sent to the event listener URL.',
      'Install the app: everybody who installs it finds the bot in the list of contacts.',
    ],
  },
  load: () => import('./adapter.ts'),
})
