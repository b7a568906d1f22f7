import type { ChannelSetup } from 'svc/channels'

export default {
  difficulty: 'easy',
  minutes: 5,
  steps: [
    'In the settings of Stoat, under "My Bots", create a bot, and copy its token.',
    'On the same page open its invite, and add it to a server or a group.',
    'Let its role read the history of the channels where it should answer, and send messages, files and reactions.',
    'For a server of your own, enter the address of its API as `base_url`.',
  ],
} satisfies ChannelSetup
