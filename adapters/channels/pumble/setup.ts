import type { ChannelSetup } from 'svc/channels'

export default {
  difficulty: 'hard',
  minutes: 20,
  steps: [
    'Make an app with a bot, as the documentation lists its manifest: Pumble answers with the app key, the client secret and the signing secret.',
    'In the manifest enter the address of the webhook for events, block interactions and slash commands.',
    'Authorize the app for the workspace, and exchange the code for the token of the bot.',
    'Enter the token of the bot, the app key and the signing secret.',
    'Add the bot to the channels where it should answer.',
  ],
} satisfies ChannelSetup
