import { defineChannel } from 'svc/channels'
import type { ChannelDeclaration } from 'svc/channels'

export const discord: ChannelDeclaration = {
  name: 'discord',
  title: 'Discord',
  category: 'messaging',
  description: 'A bot in the servers and direct messages of Discord.',
  setup: {
    icon: 'DC',
    difficulty: 'easy',
    minutes: 5,
    steps: [
      'In the developer portal (discord.com/developers/applications) make an application, and copy the token of its bot.',
      'On the same page switch on "Message Content Intent".',
      'Under OAuth2 choose the scope "bot" and what it may do, open the address, and choose a server.',
    ],
  },
  load: () => import('./adapter.ts'),
}

export default defineChannel('1.0.0', discord)
