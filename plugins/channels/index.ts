import { Channels } from 'svc/channels'
import { Configuration, Daemon } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Approvals } from '../approvals/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Chat, SlashCommands, Turns } from '../chat/contract.ts'
import { Workspaces } from '../files/contract.ts'
import { Journal } from '../journal/contract.ts'
import { Screening } from '../screening/contract.ts'
import { Sessions } from '../sessions/contract.ts'
import { Section, Settings } from './config.ts'
import {
  ChannelAccounts,
  ChannelConnected,
  ChannelDisconnected,
  ChannelMessages,
  MessageReceived,
  MessageSent,
  ReplyFormatted,
} from './contract.ts'
import { migrations } from './migrations.ts'

export default definePlugin({
  name: 'channels',
  version: '1.0.0',
  config: Settings,
  sections: { channels: Section },
  requires: {
    agents: Agents,
    audit: Audit,
    chat: Chat,
    configuration: Configuration,
    daemon: Daemon,
    journal: Journal,
    screening: Screening,
    sessions: Sessions,
    slashCommands: SlashCommands,
    turns: Turns,
  },
  optional: { approvals: Approvals, workspaces: Workspaces },
  provides: { channels: Channels, accounts: ChannelAccounts, messages: ChannelMessages },
  outbound: 'both',
  hooks: [ChannelConnected, ChannelDisconnected, MessageReceived, MessageSent, ReplyFormatted],
  migrations,
  async setup(ctx) {
    const { startHost } = await import('./host.ts')
    return startHost(ctx)
  },
})
