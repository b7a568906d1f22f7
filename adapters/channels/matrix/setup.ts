import type { ChannelSetup } from 'svc/channels'

export default {
  difficulty: 'easy',
  minutes: 3,
  steps: [
    'Make an account for the bot on a homeserver.',
    'Enter its user and password, or an access token of it.',
    'Invite it to a room without encryption.',
  ],
} satisfies ChannelSetup
