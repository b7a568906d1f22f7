import { defineChannel } from 'svc/channels'
import type { ChannelDeclaration } from 'svc/channels'

export const mattermost: ChannelDeclaration = {
  name: 'mattermost',
  title: 'Mattermost',
  category: 'enterprise',
  description: 'A bot account in the channels and direct messages of a Mattermost server.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
}

export default defineChannel('1.0.0', mattermost)
