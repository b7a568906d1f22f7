import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'MQ',
  difficulty: 'medium',
  minutes: 5,
  steps: [
    'Choose topics to read and to write; a + in the topic stands for the sender.',
    'Let the rules of the broker say who may write to them.',
  ],
} satisfies ChannelSetup
