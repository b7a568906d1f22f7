import type * as v from 'valibot'
import { homeId, toIso, wallClock as systemClock } from 'svc/internal'
import type { Broadcast, Configuration, Daemon } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { PluginContext, ServiceToken, Statement } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Approvals } from '../approvals/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Chat, SlashCommands, Turns } from '../chat/contract.ts'
import type { Workspaces } from '../files/contract.ts'
import type { Cluster } from '../cluster/contract.ts'
import type { Journal } from '../journal/contract.ts'
import type { Screening } from '../screening/contract.ts'
import type { Sessions } from '../sessions/contract.ts'
import { accountKey } from './accounts/account.ts'
import type { Account } from './accounts/account.ts'
import { Accounts } from './accounts/service.ts'
import { AccountStore } from './accounts/store.ts'
import type { Section, Settings } from './config.ts'
import type { LinkDeps } from './connections/link.ts'
import { AccountConnections } from './connections/account-connections.ts'
import type { AdapterRegistry } from './connections/registry.ts'
import { SignIns } from './connections/sign-ins.ts'
import { ConnectionStore } from './connections/store.ts'
import { ChannelConnected, ChannelDisconnected } from './contract.ts'
import type { ChannelAccounts, ChannelMessages } from './contract.ts'
import { createHandlers } from './http/handlers.ts'
import type { Handlers } from './http/handlers.ts'
import { requireChannel } from './http/views.ts'
import type { Messaging } from './messaging.ts'
import type { ChannelSendDeps } from './outbox/send-from-tool.ts'
import type { MessageCounters } from './registrations.ts'
import { hasRows } from './store.ts'
import { createMessaging, resultSender, sendText, trafficInfo } from './traffic.ts'

export type HostContext = PluginContext<
  Settings & { readonly channels: v.InferOutput<typeof Section> },
  {
    agents: ServiceToken<Agents>
    audit: ServiceToken<Audit>
    broadcast: ServiceToken<Broadcast>
    chat: ServiceToken<Chat>
    cluster: ServiceToken<Cluster>
    configuration: ServiceToken<Configuration>
    daemon: ServiceToken<Daemon>
    journal: ServiceToken<Journal>
    screening: ServiceToken<Screening>
    sessions: ServiceToken<Sessions>
    slashCommands: ServiceToken<SlashCommands>
    turns: ServiceToken<Turns>
  },
  { approvals: ServiceToken<Approvals>; workspaces: ServiceToken<Workspaces> }
>

/** What runs as soon as there is an account, a message or a request. */
export interface ChannelHost {
  readonly accounts: Accounts
  readonly connections: AccountConnections
  readonly messaging: Messaging
  /** What the routes do. */
  readonly handlers: Handlers
  /** What the tool `channel_send` needs. */
  readonly toolDeps: ChannelSendDeps
  /** What other plugins send. */
  readonly messages: ChannelMessages
  /** As `ChannelAccounts` says. */
  add(account: Parameters<ChannelAccounts['add']>[0], connect: () => Promise<void>): Promise<boolean>
  close(): Promise<void>
}
export interface HostParts {
  readonly registry: AdapterRegistry
  readonly counters: MessageCounters
  /** `[channels]` of the file. */
  readonly section: v.InferOutput<typeof Section>
  /** For each batch that changes an account. */
  readonly tellAccounts: () => readonly Statement[]
}

/** Reads no platform and connects to nobody before `connections.begin()`. */
export function createHost(ctx: HostContext, { registry, counters, section, tellAccounts }: HostParts): ChannelHost {
  const { config, log, services } = ctx
  const background = inBackground(ctx)
  const accounts = createAccounts(ctx, { registry, section, tellAccounts })
  const link = createLinkDeps(ctx, registry)
  const { messaging, toolDeps } = createMessaging(ctx, { registry, accounts, counters, connections: () => connections })
  const connections = createConnections(ctx, { registry, accounts, background, link, messaging })
  connections.onChange((channel, accountId) => messaging.wake(channel, accountId))
  const signIns = new SignIns({
    link,
    background,
    authenticated: ({ channel, id }) => background(() => connections.restartAccount(channel, id)),
  })
  const requireChannelName = (given: string): string => requireChannel(registry, given).name
  const handlers = createHandlers({
    accounts,
    connections,
    registry,
    messaging,
    signIns,
    link,
    background,
    log,
    agents: services.agents,
    configuration: services.configuration,
    credentials: ctx.credentials,
    webhooksPerMinute: config.webhook_rate_per_minute,
    probeMs: config.open_timeout_secs * 1000,
    traffic: trafficInfo(messaging),
    send: sendText(messaging, registry),
    channelName: requireChannelName,
    hasRows: (channel) => hasRows(ctx.db, channel),
  })
  const add: ChannelHost['add'] = async ({ channel, isCheck = false, ...account }, connect) => {
    const name = requireChannelName(channel)
    if (await accounts.find(name, account.id)) return false
    await accounts.configure({ channel: name, isCheck, ...account })
    if (!isCheck) await connect()
    return true
  }
  const close = async (): Promise<void> => {
    signIns.close()
    await connections.close('the plugin is being unloaded')
    await messaging.close()
  }
  const messages = resultSender(messaging, { registry, accounts, agents: services.agents })
  return { accounts, connections, messaging, handlers, toolDeps, messages, add, close }
}

/** Runs work that unloading waits for. */
function inBackground({ run, signal, log }: HostContext): (work: () => Promise<unknown>) => void {
  return (work) => {
    run(work).catch((error: unknown) => {
      if (!signal.aborted) log.error('work for a channel failed', error)
    })
  }
}

function createAccounts(
  { config, db, vault, services, admit, log }: HostContext,
  { registry, section, tellAccounts }: Pick<HostParts, 'registry' | 'section' | 'tellAccounts'>,
): Accounts {
  const states = new ConnectionStore(db)
  return new Accounts({
    section,
    store: new AccountStore(db, log),
    vault,
    audit: services.audit,
    registry,
    tellChanged: tellAccounts,
    commit: (statements) => db.batch(statements),
    admit,
    forget: (channel, id) => [states.removeStates(channel, id)],
    maxAccounts: config.max_accounts,
    now: () => toIso(systemClock.now()),
  })
}

function createLinkDeps(ctx: HostContext, registry: AdapterRegistry): LinkDeps {
  const { db, vault, log } = ctx
  return {
    store: new ConnectionStore(db),
    vault,
    log,
    clock: systemClock,
    // Only the file may name private addresses: what comes over the API could be an agent's idea.
    networkOf({ channel, source }) {
      const network = isBuiltIn(ctx, channel) ? ctx : registry.network(channel)
      if (!network) throw new Refusal('conflict', `There is no adapter for ${channel}: install its plugin`)
      return { network, operator: source === 'file' ? network.operator : undefined }
    },
    // A program does whatever the daemon may do, so nobody but the operator chooses one.
    spawnOf: ({ channel, source }) => (source === 'file' && isBuiltIn(ctx, channel) ? ctx.spawn : undefined),
  }
}

/** Whether the channel is one of the daemon. Every other one is held to what its plugin declares. */
function isBuiltIn({ services }: HostContext, channel: string): boolean {
  const name = `channel-${channel.replaceAll('_', '-')}`
  const plugin = services.daemon.plugins().find((one) => one.name === name)
  return plugin?.access === 'built-in' && (plugin.state === 'loaded' || plugin.state === 'loading')
}

/** Accounts were let go by the sender. */
const ACCOUNTS_RELEASED = 'channels.released'

interface ConnectionParts {
  readonly messaging: Messaging
  readonly link: LinkDeps
  readonly registry: AdapterRegistry
  readonly accounts: Accounts
  readonly background: (work: () => Promise<unknown>) => void
}
function createConnections(
  ctx: HostContext,
  { registry, accounts, background, link, messaging }: ConnectionParts,
): AccountConnections {
  const { config, hooks, log, own, services } = ctx
  const connections = new AccountConnections({
    ...link,
    accounts,
    registry,
    settings: config,
    random: Math.random,
    leaseHolder: homeId(services.daemon.config()),
    released: () => services.broadcast.send(ACCOUNTS_RELEASED, {}),
    receive: (account, adapter, message) => messaging.inbox.receive(account, adapter, message),
    observe(account, event, reason) {
      const { channel, id: accountId } = account
      background(async () => {
        if (event === 'connected') {
          log.info(`channel ${accountKey(channel, accountId)} is connected`)
          await noteFirstConnection(ctx, account)
          await hooks.emit(ChannelConnected, { channel, accountId })
        } else if (event === 'disconnected') await hooks.emit(ChannelDisconnected, { channel, accountId, reason })
        else await noteEnding(ctx, account, reason)
      })
    },
  })
  const retry = (): void => connections.retry()
  const subscription = services.broadcast.on(ACCOUNTS_RELEASED, { heard: retry, missed: retry })
  own('messages of other daemons', () => subscription[Symbol.dispose]())
  return connections
}

/** No key of an adapter: theirs are short names. */
const FIRST_CONNECTION = '@first-connection'

async function noteFirstConnection({ db, services }: HostContext, { channel, id }: Account): Promise<void> {
  const store = new ConnectionStore(db)
  if (!(await store.claimState(channel, id, FIRST_CONNECTION, toIso(systemClock.now())))) return
  await services.audit.write({
    event: 'channel_changed',
    details: `channel ${accountKey(channel, id)} connected for the first time`,
  })
}
async function noteEnding({ log, services }: HostContext, { channel, id }: Account, reason: string): Promise<void> {
  log.warn(`channel ${accountKey(channel, id)} cannot connect as it is configured: ${reason}`)
  await services.audit.write({
    event: 'channel_changed',
    details: `channel ${accountKey(channel, id)} cannot connect as it is configured: ${reason}`,
  })
}
