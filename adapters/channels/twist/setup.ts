import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'TW',
  difficulty: 'medium',
  minutes: 5,
  steps: [
    'Make an account for the bot in the workspace, and sign in as it.',
    'At twist.com/app_console add an integration, and under its OAuth settings copy the test token, which begins with oauth2:.',
    'The id of the workspace is the first number in the address of the app, after /a/.',
    'Add the account to the channels where it should answer.',
  ],
} satisfies ChannelSetup
