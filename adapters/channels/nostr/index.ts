import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'nostr',
  title: 'Nostr',
  category: 'messaging',
  description: 'Private direct messages of Nostr, over relays of your choice.',
  setup: {
    difficulty: 'easy',
    minutes: 5,
    steps: [
      'Make a new account for the bot in any Nostr app, and copy its private key (nsec1…) from the settings of the app.',
      'Choose one to three relays that keep direct messages, and put their addresses (wss://…) into "Relays".',
      'Put your own public key (npub1…) into "Allowed users".',
      'Write a private message to the public key of the bot.',
    ],
  },
  load: () => import('./adapter.ts'),
})
