import type { ChannelSetup } from 'svc/channels'

export default {
  icon: '{}',
  difficulty: 'easy',
  minutes: 2,
  steps: [
    'Make up a secret of at least 16 characters, which signs requests in both directions.',
    'For answers, have an address of the other program that takes them.',
  ],
} satisfies ChannelSetup
