import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'MM',
  difficulty: 'easy',
  minutes: 5,
  steps: [
    'As a system administrator switch on bot accounts, make one under Integrations, and copy its token.',
    'Add the bot to a team and its channels.',
  ],
} satisfies ChannelSetup
