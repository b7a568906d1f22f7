import type { ChannelSetup } from 'svc/channels'

export default {
  difficulty: 'medium',
  minutes: 10,
  steps: [
    'Make an account for the bot on the forum, without rights of an administrator: its name is `api_username`.',
    'As an administrator make a key under Admin, API keys, for this single user, and copy it: it is `token`.',
    'Optional, so that answers begin at once: under Admin, Webhooks, enter the address of the webhook.',
    'Choose the content type application/json and the post events, and make up a secret: it is `webhook_secret`.',
  ],
} satisfies ChannelSetup
