import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'telegram',
  title: 'Telegram',
  category: 'messaging',
  description: 'A Telegram bot, by long polling or by webhook.',
  setup: {
    icon: 'TG',
    difficulty: 'easy',
    minutes: 2,
    steps: ['Write /newbot to @BotFather in Telegram.', 'Copy the token that it answers with.'],
  },
  load: () => import('./adapter.ts'),
})
