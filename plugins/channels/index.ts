import { isDeepStrictEqual } from 'node:util'
import { Channels } from 'svc/channels'
import { Broadcast, Configuration, Daemon } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Approvals } from '../approvals/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Chat, SlashCommands, Turns } from '../chat/contract.ts'
import { Workspaces } from '../files/contract.ts'
import { Cluster, DrainingChanged, MemberEnded, OwnedCounted } from '../cluster/contract.ts'
import { Journal } from '../journal/contract.ts'
import { Screening } from '../screening/contract.ts'
import { Sessions } from '../sessions/contract.ts'
import { Section, Settings } from './config.ts'
import { AdapterRegistry } from './connections/registry.ts'
import {
  ChannelAccounts,
  ChannelConnected,
  ChannelDisconnected,
  ChannelMessages,
  MessageReceived,
  MessageSent,
  ReplyFormatted,
} from './contract.ts'
import type { ChannelHost, HostContext } from './host.ts'
import { HostLoader } from './host-loader.ts'
import { migrations } from './migrations.ts'
import { createCounters, register } from './registrations.ts'
import { isUsed } from './store.ts'

export default definePlugin({
  name: 'channels',
  version: '1.0.0',
  config: Settings,
  sections: { channels: Section },
  requires: {
    agents: Agents,
    audit: Audit,
    broadcast: Broadcast,
    chat: Chat,
    cluster: Cluster,
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
  pages: [
    {
      path: 'channels',
      title: 'Channels',
      group: 'Connections',
      file: 'pages/channels.html',
      assets: [
        'account-dialogs.js',
        'channel-list.js',
        'channels.css',
        'channels.js',
        'form-field.js',
        'form.js',
        'messages.js',
        'pairing.js',
        'panel.js',
        'sign-in.js',
        'state.js',
      ],
    },
  ],
  setup(ctx) {
    const { config, db, log } = ctx
    const counters = createCounters(ctx.metrics)
    const registry = new AdapterRegistry(async (name) => {
      try {
        const connections = (await host.requested())?.connections
        await connections?.sync()
        if (connections) ctx.services.daemon.trackWork(connections.attempted())
      } catch (error) {
        log.error(`the connections of ${name} could not be changed`, error)
      }
    })
    let section = config.channels
    const host = new HostLoader({
      async create() {
        const created = (await import('./host.ts')).createHost(ctx, { registry, counters, section, tellAccounts })
        await handOver(created)
        return created
      },
      isUsed: async () => Object.keys(section).length > 0 || (await isUsed(db)),
    })
    ctx.own('channels', () => host.close())
    const command = ctx.services.slashCommands.add({
      name: 'agent',
      takes: '<name>',
      description: 'let this agent answer here',
      surfaces: ['channel'],
      effectOf: () => 'conversation',
      run: () => 'An agent is chosen in a chat of a channel.',
    })
    ctx.own('command', command)
    const { connect, tellAccounts } = register(ctx, host)
    ctx.onConfigChange(async (next) => {
      if (!isDeepStrictEqual({ ...next, channels: section }, { ...config, channels: section })) return false
      section = next.channels
      // Accounts that did not change keep their connections.
      const created = await host.requested()
      created?.accounts.replaceFile(section)
      await connect()
      return true
    })
    const handOver = handOverAccounts(ctx, () => host.requested())
    const configured = async () => {
      const accounts = (await (await host.loadIfUsed())?.accounts.list()) ?? []
      return [...new Set(accounts.map(({ channel }) => channel))]
    }
    const add: ChannelAccounts['add'] = async (account) => (await host.load()).add(account, connect)
    const messages: ChannelMessages = {
      check: async (target) => (await host.load()).messages.check(target),
      send: async (message) => (await host.load()).messages.send(message),
      lastChat: async (agentId) => (await host.loadIfUsed())?.messages.lastChat(agentId),
    }
    return { channels: registry, accounts: { configured, add }, messages }
  },
})

/** Lets accounts go while this daemon drains and another one takes them; otherwise they stay connected here. */
function handOverAccounts(
  { db, hooks, services: { cluster } }: Pick<HostContext, 'db' | 'hooks' | 'services'>,
  requested: () => Promise<ChannelHost | undefined>,
): (host: ChannelHost) => Promise<void> {
  const handOver = async ({ connections }: ChannelHost): Promise<void> => {
    const others = cluster.isDraining ? await cluster.members() : []
    await connections.drain(others.some(({ id, state }) => id !== cluster.self && state === 'active'))
  }
  const review = async (): Promise<void> => {
    const host = await requested()
    if (host) await handOver(host)
  }
  hooks.on(DrainingChanged, review)
  hooks.on(MemberEnded, review)
  hooks.on(OwnedCounted, async (counts) => {
    const { ConnectionStore } = await import('./connections/store.ts')
    return [...counts, ...(await new ConnectionStore(db).countLeases())]
  })
  return handOver
}
