import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'viber',
  title: 'Viber',
  category: 'messaging',
  description: 'A bot account of Viber in chats with people who subscribed to it.',
  setup: {
    icon: 'VI',
    difficulty: 'hard',
    minutes: 30,
    steps: [
      'Apply for a bot at developers.viber.com: since February 2024 Viber makes them under a contract, for a fee.',
      'In Viber on a phone open More, Settings, Bots, the bot and Edit Info, and copy the app key: it is the token.',
      'Enter the public address of the webhook, with https and a certificate of a known authority.',
      'Choose the name that stands above the answers.',
    ],
  },
  load: () => import('./adapter.ts'),
})
