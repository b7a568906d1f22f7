import { DaemonListening, followChanges } from 'svc/internal'
import type { Counter, Metrics, Statement } from 'svc/sdk'
import { AgentKilling } from '../agents/contract.ts'
import { ApprovalRequested } from '../approvals/contract.ts'
import type { HostContext } from './host.ts'
import type { HostLoader } from './host-loader.ts'
import { channelRoutes } from './http/routes.ts'
import { channelSendTool } from './outbox/channel-send.ts'

const CONNECT_MS = 60_000
const RESUME_MS = 30_000
const RETENTION_MS = 3_600_000

export interface MessageCounters {
  readonly received: Counter
  readonly sent: Counter
  readonly guesses: Counter
}
export function createCounters(metrics: Metrics): MessageCounters {
  return {
    received: metrics.counter('svc_channel_messages_received_total', 'Messages of chat platforms, by outcome.'),
    sent: metrics.counter('svc_channel_messages_sent_total', 'Messages to chat platforms, by outcome.'),
    guesses: metrics.counter('svc_channel_pairing_codes_total', 'Pairing codes that people sent, by outcome.'),
  }
}

/**
 * Registers all that the plugin has without reading the code of the host. `connect` starts and ends connections as they
 * are configured, once the daemon listens. `tellAccounts` is for each batch that changes an account: other daemons do
 * the same then.
 */
export function register(
  ctx: HostContext,
  host: HostLoader,
): { readonly connect: () => Promise<void>; readonly tellAccounts: () => readonly Statement[] } {
  const { config, db, hooks, jobs, log, metrics, own, routes, run, services, tools } = ctx
  routes.add(...channelRoutes({ host: () => host.load(), webhookMaxBytes: config.webhook_max_bytes }))
  tools.add(channelSendTool(async () => (await host.load()).toolDeps))
  metrics.observed('svc_channels_accounts', 'Accounts of chat platforms that are enabled, by state.', () =>
    (host.loaded?.connections.counts() ?? []).map(({ channel, state, count }) => ({
      value: count,
      labels: { channel, state },
    })),
  )
  const connect = connectWhenListening(ctx, host)
  jobs.every('messages', RESUME_MS, async () => host.loaded?.messaging.resume())
  jobs.every('messages-retention', RETENTION_MS, async () => host.loaded?.messaging.deleteOld())
  hooks.on(ApprovalRequested, async ({ approval }) => {
    await (await host.loadIfUsed())?.messaging.askForApproval(approval)
  })
  hooks.on(AgentKilling, async ({ agent, statements }) => {
    const used = await host.loadIfUsed()
    const { RoutingStore } = await import('./routing/store.ts')
    const forgetting = used?.messaging.conversations ?? new RoutingStore(db, log)
    return { agent, statements: [...statements, ...forgetting.forgetAgent(agent.id)] }
  })
  const tell = followChanges({ broadcast: services.broadcast, own }, 'channels.accounts', () => {
    run(connect).catch((error: unknown) => log.error('the accounts that changed could not be connected', error))
  })
  return { connect, tellAccounts: () => tell('') }
}

/** Answering requests comes before connecting to anybody. */
function connectWhenListening({ hooks, jobs, log, services, run }: HostContext, host: HostLoader): () => Promise<void> {
  const begin = async (): Promise<void> => {
    const used = await host.loadIfUsed()
    if (!used) return
    await used.messaging.resume()
    await used.connections.begin()
  }
  const start = (): void => {
    const begun = run(begin).catch((error: unknown) =>
      log.error('the channels could not be connected; another attempt follows', error),
    )
    services.daemon.trackWork(begun.then(() => host.loaded?.connections.attempted()))
  }
  const isListening = (): boolean => services.daemon.isListening
  // A reloaded plugin is not told again that the daemon listens.
  if (isListening()) start()
  else hooks.on(DaemonListening, start)
  jobs.every('connections', CONNECT_MS, begin)
  return async () => {
    if (isListening()) await begin()
  }
}
