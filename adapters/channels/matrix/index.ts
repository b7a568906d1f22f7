import { defineChannel } from 'svc/channels'
import type { ChannelDeclaration } from 'svc/channels'

export const matrix: ChannelDeclaration = {
  name: 'matrix',
  title: 'Matrix',
  category: 'messaging',
  description: 'An account on a Matrix homeserver, in rooms without encryption.',
  setup: {
    difficulty: 'easy',
    minutes: 3,
    steps: [
      'Make an account for the bot on a homeserver.',
      'Enter its user and password, or an access token of it.',
      'Invite it to a room without encryption.',
    ],
  },
  load: () => import('./adapter.ts'),
}

export default defineChannel('1.0.0', matrix)
