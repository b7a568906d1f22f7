import type { ChannelSetup } from 'svc/channels'

export default {
  icon: '企',
  difficulty: 'medium',
  minutes: 10,
  steps: [
    'In the client of WeCom, under Workbench and Intelligent Robot, make a robot in API mode with a long connection.',
    'Copy its Bot ID and its Secret.',
    'Or choose the mode "app": in the admin console make an application, and copy its AgentId, its Secret and the company id.',
    'Under "Receive messages" of the application, enter the address of the webhook, and copy the Token and the EncodingAESKey.',
    'Add the address of this machine to the trusted IP addresses of the application.',
  ],
} satisfies ChannelSetup
