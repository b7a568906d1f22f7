import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'VI',
  difficulty: 'hard',
  minutes: 30,
  steps: [
    'Apply for a bot at developers.viber.com: since February 2024 Viber makes them under a contract, for a fee.',
    'In Viber on a phone open More, Settings, Bots, the bot and Edit Info, and copy the app key: it is the token.',
    'Enter the public address of the webhook, with https and a certificate of a known authority.',
    'Choose the name that stands above the answers.',
  ],
} satisfies ChannelSetup
