import type { ChannelSetup } from 'svc/channels'

export default {
  difficulty: 'medium',
  minutes: 10,
  steps: [
    'Make an app at api.slack.com/apps, with the scopes and events that the documentation lists, and install it.',
    'Copy its bot token (xoxb-…).',
    'Switch on Socket Mode and make an app-level token (xapp-…), or copy the signing secret for the webhook.',
  ],
} satisfies ChannelSetup
