import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'xmpp',
  title: 'XMPP',
  category: 'messaging',
  description: 'A user of an XMPP (Jabber) server, in chats and rooms.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
