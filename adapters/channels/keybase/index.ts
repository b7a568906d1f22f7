import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'keybase',
  title: 'Keybase',
  category: 'messaging',
  description: 'A user of Keybase, in chats and the channels of teams, by the program of Keybase.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
