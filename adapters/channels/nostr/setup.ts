import type { ChannelSetup } from 'svc/channels'

export default {
  difficulty: 'easy',
  minutes: 5,
  steps: [
    'Make a new account for the bot in any Nostr app, and copy its private key (nsec1…) from the settings of the app.',
    'Choose one to three relays that keep direct messages, and put their addresses (wss://…) into "Relays".',
    'Put your own public key (npub1…) into "Allowed users".',
    'Write a private message to the public key of the bot.',
  ],
} satisfies ChannelSetup
