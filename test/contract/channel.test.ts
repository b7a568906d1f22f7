import { startFakeDiscord } from '../support/platforms/discord.ts'
import { FakeTelegram } from '../support/platforms/telegram.ts'
import { FakeWebhook } from '../support/platforms/webhook.ts'
import { testChannel } from './channel.ts'
import type { ChannelRow } from './channel.ts'

/** One more channel is one more row. */
const channels: readonly ChannelRow[] = [
  {
    name: 'webhook',
    load: () => import('../../adapters/channels/webhook/adapter.ts'),
    start: () => FakeWebhook.start(),
  },
  {
    name: 'telegram',
    load: () => import('../../adapters/channels/telegram/adapter.ts'),
    start: () => FakeTelegram.start(),
  },
  {
    name: 'telegram by webhook',
    load: () => import('../../adapters/channels/telegram/adapter.ts'),
    start: () => FakeTelegram.start({ webhook: true }),
  },
  {
    name: 'discord',
    load: () => import('../../adapters/channels/discord/adapter.ts'),
    start: startFakeDiscord,
  },
]

for (const channel of channels) testChannel(channel)
