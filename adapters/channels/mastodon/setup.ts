import type { ChannelSetup } from 'svc/channels'

export default {
  difficulty: 'easy',
  minutes: 5,
  steps: [
    'Make an account for the bot on an instance that allows bots, and mark it as automated in its profile.',
    'Under Preferences, Development, add an application with the scopes read, write:statuses and write:media.',
    'Open the application and copy "Your access token"; "Address" is that of the instance.',
    'Put the accounts that may ask into "Allowed users", such as @ada or @ada@example.org.',
  ],
} satisfies ChannelSetup
