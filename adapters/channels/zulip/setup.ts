import type { ChannelSetup } from 'svc/channels'

export default {
  difficulty: 'easy',
  minutes: 3,
  steps: [
    'In the settings of Zulip, under Bots, add a bot of the type "Generic bot".',
    'Copy its email address and its API key.',
    'Subscribe it to the channels where it should answer.',
  ],
} satisfies ChannelSetup
