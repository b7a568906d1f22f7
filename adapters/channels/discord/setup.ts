import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'DC',
  difficulty: 'easy',
  minutes: 5,
  steps: [
    'In the developer portal (discord.com/developers/applications) make an application, and copy the token of its bot.',
    'On the same page switch on "Message Content Intent".',
    'Under OAuth2 choose the scope "bot" and what it may do, open the address, and choose a server.',
  ],
} satisfies ChannelSetup
