import type { ChannelSetup } from 'svc/channels'

export default {
  difficulty: 'hard',
  minutes: 20,
  steps: [
    'Make a key pair with the Threema Gateway SDK or its command line tool, and keep the private key.',
    'At gateway.threema.ch request an id with end-to-end encryption, and enter the public key there.',
    'Buy credits: each message that is sent costs one or two.',
    'Copy the id, which begins with an asterisk, and its API secret.',
    'After saving, enter the address of the webhook as the callback URL of the id.',
  ],
} satisfies ChannelSetup
