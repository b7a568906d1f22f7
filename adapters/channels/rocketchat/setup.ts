import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'RC',
  difficulty: 'medium',
  minutes: 5,
  steps: [
    'As an administrator add a user with the role bot, and add it to the rooms where it should answer.',
    'Give the role bot the permission api-bypass-rate-limit, as ten requests a minute are allowed otherwise.',
    'Sign in as the bot; under My Account, Personal Access Tokens, add a token that ignores two-factor authentication.',
    'Copy the token and the user id, which are shown once.',
  ],
} satisfies ChannelSetup
