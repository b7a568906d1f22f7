import type { ChannelSetup } from 'svc/channels'

export default {
  difficulty: 'easy',
  minutes: 3,
  steps: [
    'Sign in to Bluesky with the account that should answer; make one of its own for the bot.',
    'Under Settings, Privacy and security, App passwords, add an app password, and copy it.',
    'Enter the handle of the account, such as helper.bsky.social, and the app password.',
  ],
} satisfies ChannelSetup
