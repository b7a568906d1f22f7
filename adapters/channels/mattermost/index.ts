import { defineChannel } from 'svc/channels'
import type { ChannelDeclaration } from 'svc/channels'

export const mattermost: ChannelDeclaration = {
  name: 'mattermost',
  title: 'Mattermost',
  category: 'enterprise',
  description: 'A bot account in the channels and direct messages of a Mattermost server.',
  setup: {
    icon: 'MM',
    difficulty: 'easy',
    minutes: 5,
    steps: [
      'As a system administrator switch on bot accounts, make one under Integrations, and copy its token.',
      'Add the bot to a team and its channels.',
    ],
  },
  load: () => import('./adapter.ts'),
}

export default defineChannel('1.0.0', mattermost)
