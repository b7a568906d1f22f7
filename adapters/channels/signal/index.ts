import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'signal',
  title: 'Signal',
  category: 'messaging',
  description: 'A phone number of Signal that signal-cli serves, in chats and groups.',
  setup: {
    icon: 'SI',
    difficulty: 'medium',
    minutes: 15,
    steps: [
      'Get a phone number for the bot that Signal can send a code to.',
      'Install signal-cli (github.com/AsamK/signal-cli), and register the number: `signal-cli -a <number> register`, then `verify` with the code.',
      'Run `signal-cli -a <number> daemon --http=localhost:8080 --receive-mode=manual`, which keeps messages while svc is away.',
      'Enter the number with its country code and the address http://localhost:8080. For signal-cli-rest-api, choose that server instead.',
    ],
  },
  load: () => import('./adapter.ts'),
})
