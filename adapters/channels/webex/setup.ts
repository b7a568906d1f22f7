import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'WX',
  difficulty: 'medium',
  minutes: 10,
  steps: [
    'At developer.webex.com, under "My Webex Apps", make a bot, and copy its access token.',
    'Enter the public address of the webhook, and a secret for it: any text of your own of 16 characters or more.',
    'Add the bot to the spaces where it should answer, by the address that ends in @webex.bot.',
  ],
} satisfies ChannelSetup
