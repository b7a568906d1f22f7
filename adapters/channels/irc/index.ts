import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'irc',
  title: 'IRC',
  category: 'messaging',
  description: 'A bot in the channels and private messages of an IRC network.',
  setup: {
    icon: '#',
    difficulty: 'easy',
    minutes: 2,
    steps: ['Choose a nickname, and register it with NickServ if the network has it.', 'Choose the channels to join.'],
  },
  load: () => import('./adapter.ts'),
})
