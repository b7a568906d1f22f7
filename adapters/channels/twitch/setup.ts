import type { ChannelSetup } from 'svc/channels'

export default {
  difficulty: 'medium',
  minutes: 10,
  steps: [
    'Sign in to Twitch with the account that should answer; make one of its own for the bot.',
    'At dev.twitch.tv/console, register an application, and copy its client id; create a client secret unless the type of the application is "Public".',
    'Get a user access token and its refresh token for this application with the scopes user:read:chat and user:write:chat, such as with `twitch token -u -s "user:read:chat user:write:chat"` of the Twitch CLI.',
    'Enter the names of the channels whose chat the bot should join.',
    'Where the bot should write faster than 20 messages in 30 seconds, make it a moderator with /mod.',
  ],
} satisfies ChannelSetup
