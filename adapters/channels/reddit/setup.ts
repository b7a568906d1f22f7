import type { ChannelSetup } from 'svc/channels'

export default {
  difficulty: 'medium',
  minutes: 10,
  steps: [
    'Sign in to Reddit with the account that should answer; make one of its own for the bot, without two-factor sign-in.',
    'Where Reddit asks for it, request access to its Data API for this bot, and wait for the approval.',
    'At reddit.com/prefs/apps create an app of the type "script"; its redirect address may be http://localhost.',
    'Copy the client id, which stands below the name of the app, and its secret.',
    'Enter both, the name and the password of the account, and a user agent with your own name, such as "server:my-helper:v1 (by /u/your-own-name)".',
  ],
} satisfies ChannelSetup
