import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'WA',
  difficulty: 'hard',
  minutes: 20,
  steps: [
    'In the Meta dashboard make an app with the product WhatsApp, and copy the id of the phone number and the app secret.',
    'Make a system user, and a token for it that does not expire.',
    'After saving, enter the address of the webhook and the verify token in the dashboard, and subscribe to "messages".',
    'Or choose the mode "web", and link a phone with a QR code: that is against the terms of WhatsApp.',
  ],
} satisfies ChannelSetup
