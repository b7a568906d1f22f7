import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'SI',
  difficulty: 'medium',
  minutes: 15,
  steps: [
    'Get a phone number for the bot that Signal can send a code to.',
    'Install signal-cli (github.com/AsamK/signal-cli), and register the number: `signal-cli -a <number> register`, then `verify` with the code.',
    'Run `signal-cli -a <number> daemon --http=localhost:8080 --receive-mode=manual`, which keeps messages while svc is away.',
    'Enter the number with its country code and the address http://localhost:8080. For signal-cli-rest-api, choose that server instead.',
  ],
} satisfies ChannelSetup
