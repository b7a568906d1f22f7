import type { ChannelSetup } from 'svc/channels'

export default {
  difficulty: 'hard',
  minutes: 10,
  steps: [
    'Guilded closed in December 2025: this is of use only with a server of somebody else that speaks its protocol.',
    'Enter the address of the API of that server as `base_url`, such as https://guilded.example.org/api/v1.',
    'Make a bot on that server, and enter its token.',
  ],
} satisfies ChannelSetup
