import type { ChannelSetup } from 'svc/channels'

export default {
  difficulty: 'easy',
  minutes: 1,
  steps: [
    'Choose a topic that nobody guesses, or reserve one and make an access token.',
    'Subscribe to it in the app. The topic itself goes into "Allowed users".',
  ],
} satisfies ChannelSetup
