import type { ChannelSetup } from 'svc/channels'

export default {
  difficulty: 'easy',
  minutes: 2,
  steps: [
    'In the web page of the server, under Apps, make an application for the answers, and copy its token.',
    'Under Clients, make a client, and copy its token: it reads what the other applications send.',
    'Put the ids of the applications that may ask into "Allowed users".',
  ],
} satisfies ChannelSetup
