import type { ChannelSetup } from 'svc/channels'

export default {
  icon: '#',
  difficulty: 'easy',
  minutes: 2,
  steps: ['Choose a nickname, and register it with NickServ if the network has it.', 'Choose the channels to join.'],
} satisfies ChannelSetup
