import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'messenger',
  title: 'Messenger',
  category: 'messaging',
  description: 'A page on Facebook that people write to with Messenger.',
  setup: {
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
  },
  load: () => import('./adapter.ts'),
})
