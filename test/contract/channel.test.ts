import { startFakeDiscord } from '../support/platforms/discord.ts'
import { startFakeMatrix } from '../support/platforms/matrix.ts'
import { startFakeMattermost } from '../support/platforms/mattermost.ts'
import { startFakeSlack } from '../support/platforms/slack.ts'
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
  {
    name: 'slack by Socket Mode',
    load: () => import('../../adapters/channels/slack/adapter.ts'),
    start: () => startFakeSlack(),
  },
  {
    name: 'slack by the Events API',
    load: () => import('../../adapters/channels/slack/adapter.ts'),
    start: () => startFakeSlack({ webhook: true }),
  },
  {
    name: 'mattermost',
    load: () => import('../../adapters/channels/mattermost/adapter.ts'),
    start: startFakeMattermost,
  },
  {
    name: 'matrix',
    load: () => import('../../adapters/channels/matrix/adapter.ts'),
    start: startFakeMatrix,
  },
]

for (const channel of channels) testChannel(channel)
