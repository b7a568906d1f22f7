import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'KB',
  difficulty: 'medium',
  minutes: 10,
  steps: [
    'Install Keybase on this machine: keybase.io/download has packages.',
    'Make an account for the bot in the app of Keybase, on any machine.',
    'Make a paper key of that account with `keybase paperkey`: it is the token.',
    'Write the account into the configuration file: it names the program, so it cannot be made in another way.',
    'Add the bot to the teams where it should answer.',
  ],
} satisfies ChannelSetup
