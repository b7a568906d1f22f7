import { Channels } from 'svc/channels'
import { Configuration, Daemon } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Audit } from '../audit/contract.ts'
import { Section, Settings } from './config.ts'
import { ChannelConnected, ChannelDisconnected, MessageReceived, MessageSent, ReplyFormatted } from './contract.ts'
import { migrations } from './migrations.ts'

export default definePlugin({
  name: 'channels',
  version: '1.0.0',
  config: Settings,
  sections: { channels: Section },
  requires: { audit: Audit, configuration: Configuration, daemon: Daemon },
  provides: { channels: Channels },
  outbound: 'both',
  hooks: [ChannelConnected, ChannelDisconnected, MessageReceived, MessageSent, ReplyFormatted],
  migrations,
  async setup(ctx) {
    const { startHost } = await import('./host.ts')
    return startHost(ctx)
  },
})
