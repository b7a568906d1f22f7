import { defineChannel } from 'svc/channels'
import type { ChannelDeclaration } from 'svc/channels'

export const slack: ChannelDeclaration = {
  name: 'slack',
  title: 'Slack',
  category: 'enterprise',
  description: 'An app in the channels and direct messages of a Slack workspace, over Socket Mode or the Events API.',
  setup: {
    difficulty: 'medium',
    minutes: 10,
    steps: [
      'Make an app at api.slack.com/apps, with the scopes and events that the documentation lists, and install it.',
      'Copy its bot token (xoxb-…).',
      'Switch on Socket Mode and make an app-level token (xapp-…), or copy the signing secret for the webhook.',
    ],
  },
  load: () => import('./adapter.ts'),
}

export default defineChannel('1.0.0', slack)
