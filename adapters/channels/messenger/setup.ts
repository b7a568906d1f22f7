import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'FB',
  difficulty: 'hard',
  minutes: 20,
  steps: [
    'At developers.facebook.com make an app with the product Messenger, and under "App settings", "Basic" copy the app secret.',
    'In the settings of Messenger connect the page, and generate a token for it.',
    'Choose a verify token: any text of your own.',
    'After saving, enter the address of the webhook and the verify token in the settings of Messenger.',
    'Add subscriptions of the page to messages, messaging_postbacks and message_edits.',
  ],
} satisfies ChannelSetup
