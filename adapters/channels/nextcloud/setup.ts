import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'NC',
  difficulty: 'medium',
  minutes: 10,
  steps: [
    'For a bot, make a secret of 40 to 128 characters, such as with "openssl rand -hex 32".',
    'On the server run "occ talk:bot:install --feature webhook --feature response --feature reaction" with a name, the secret and the address that ends in /api/channels/nextcloud/webhook.',
    'In a conversation, under Bots in its settings, a moderator switches the bot on.',
    'For an account instead, choose the mode "user": make an app password under Personal settings, Security, and put the account into conversations.',
  ],
} satisfies ChannelSetup
