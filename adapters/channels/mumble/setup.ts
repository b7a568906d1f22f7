import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'MU',
  difficulty: 'easy',
  minutes: 3,
  steps: [
    'Take the address and the port of the server from your Mumble client: in the list of servers, choose Edit.',
    'Choose a name for the bot, and the channel where it should be.',
    'If the server asks for a password, use it as the token.',
    'If the certificate of the server is its own, as usual, copy its SHA-256 fingerprint: in your client, under Server and Information, view the certificate.',
  ],
} satisfies ChannelSetup
