import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'xmpp',
  title: 'XMPP',
  category: 'messaging',
  description: 'A user of an XMPP (Jabber) server, in chats and rooms.',
  setup: {
    icon: 'XM',
    difficulty: 'easy',
    minutes: 3,
    steps: ['Make an account for the bot on an XMPP server.', 'Choose the rooms it joins, if any.'],
  },
  load: () => import('./adapter.ts'),
})
