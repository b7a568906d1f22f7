import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'LI',
  difficulty: 'medium',
  minutes: 10,
  steps: [
    'Make an official account at manager.line.biz, and enable the Messaging API in its settings.',
    'In the LINE Developers Console, under "Basic settings" of the channel, copy the channel secret.',
    'Under "Messaging API" issue a channel access token and copy it.',
    'After saving, enter the address of the webhook there, and switch on "Use webhook" and "Webhook redelivery".',
    'In the settings of the account switch off the automatic responses, and allow group chats if it should join any.',
  ],
} satisfies ChannelSetup
