import type { ChannelSetup } from 'svc/channels'

export default {
  difficulty: 'medium',
  minutes: 10,
  steps: [
    'On dev.flock.com make an app: its page shows the App ID and the App Secret.',
    'Under "Advanced Information" enable the bot, and copy its token.',
    'There, enter the address of the webhook as the event listener URL.',
    'For channels add a slash command that is sent to the event listener URL.',
    'Install the app: everybody who installs it finds the bot in the list of contacts.',
  ],
} satisfies ChannelSetup
