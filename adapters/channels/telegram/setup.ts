import type { ChannelSetup } from 'svc/channels'

export default {
  icon: 'TG',
  difficulty: 'easy',
  minutes: 2,
  steps: ['Write /newbot to @BotFather in Telegram.', 'Copy the token that it answers with.'],
} satisfies ChannelSetup
