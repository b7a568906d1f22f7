import { followChanges, stableId } from 'svc/internal'
import type { RowsInMemory } from 'svc/internal'
import { accountKey } from './accounts/account.ts'
import type { Account } from './accounts/account.ts'
import type { AccountEntry, Accounts } from './accounts/service.ts'
import type { AccountConnections } from './connections/account-connections.ts'
import type { AdapterRegistry } from './connections/registry.ts'
import type { Agents } from '../agents/contract.ts'
import type { ChannelMessages, ChannelTarget } from './contract.ts'
import type { HostContext } from './host.ts'
import { requireChannel } from './http/views.ts'
import type { TrafficInfo } from './http/views.ts'
import { Messaging } from './messaging.ts'
import { createChannelMessages, findTarget } from './outbox/channel-messages.ts'
import type { ChannelSendDeps } from './outbox/send-from-tool.ts'
import type { MessageCounters } from './registrations.ts'

export interface TrafficParts {
  readonly connections: () => AccountConnections
  readonly accounts: Accounts
  readonly registry: AdapterRegistry
  readonly counters: MessageCounters
}

/** Creates what lies between the connections and the agents. */
export function createMessaging(
  ctx: HostContext,
  { connections, accounts, registry, counters }: TrafficParts,
): { readonly messaging: Messaging; readonly toolDeps: ChannelSendDeps } {
  const parts = {
    approvals: () => ctx.optional('approvals'),
    workspaces: () => ctx.optional('workspaces'),
    connections: { find: (channel: string, id: string) => connections().find(channel, id) },
    account: async (channel: string, id: string) =>
      connections().find(channel, id)?.account ?? accounts.find(channel, id),
    adapter: (channel: string) => registry.loadIfAdded(channel),
    follow: (topic: string, rows: RowsInMemory) =>
      followChanges({ broadcast: ctx.services.broadcast, own: ctx.own }, topic, rows),
  }
  const channelName = (given: string): string => requireChannel(registry, given).name
  const target = (to: ChannelTarget) => findTarget({ ...parts, accounts, channelName, agents: ctx.services.agents }, to)
  const messaging = new Messaging({ ...ctx, ...ctx.services, ...parts, counters, target })
  return {
    messaging,
    toolDeps: { ...parts, ...messaging, fetch: ctx.fetch, agents: ctx.services.agents, audit: ctx.services.audit },
  }
}

/** What the status of an account says of its messages. */
export function trafficInfo(messaging: Messaging): TrafficInfo {
  return {
    counts: (channel, accountId) => messaging.outbox.counts(channel, accountId),
    warnings: (entry: AccountEntry) => messaging.warnings(entry),
  }
}

/** Puts a text of the operator into the outbox. */
export function sendText(messaging: Messaging, registry: AdapterRegistry) {
  return async (account: Account, chatId: string, text: string, id: string): Promise<void> => {
    const adapter = await registry.loadIfAdded(account.channel)
    if (!adapter) throw new Error(`there is no adapter for ${accountKey(account.channel, account.id)}`)
    await messaging.outbox.send({
      id: stableId('operator', id),
      kind: 'notice',
      account,
      capabilities: adapter.capabilities,
      to: { chatId },
      text,
    })
  }
}

/** The service by which other plugins send to chats. */
export function resultSender(
  messaging: Messaging,
  { registry, accounts, agents }: Pick<TrafficParts, 'registry' | 'accounts'> & { readonly agents: Agents },
): ChannelMessages {
  return createChannelMessages({
    agents,
    accounts,
    outbox: messaging.outbox,
    adapter: (channel) => registry.loadIfAdded(channel),
    channelName: (given) => requireChannel(registry, given).name,
  })
}
