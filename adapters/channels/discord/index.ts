import { defineChannel } from 'svc/channels'
import type { ChannelDeclaration } from 'svc/channels'

export const discord: ChannelDeclaration = {
  name: 'discord',
  title: 'Discord',
  category: 'messaging',
  description: 'A bot in the servers and direct messages of Discord.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
}

export default defineChannel('1.0.0', discord)
