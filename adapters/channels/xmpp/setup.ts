import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'XM',
  difficulty: 'easy',
  minutes: 3,
  steps: ['Make an account for the bot on an XMPP server.', 'Choose the rooms it joins, if any.'],
} satisfies ChannelSetup
