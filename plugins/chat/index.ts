import { randomBytes } from 'node:crypto'
import { Broadcast, Daemon, DaemonListening, DatabaseSnapshots } from 'svc/internal'
import { definePlugin, Refusal } from 'svc/sdk'
import type { Hooks, Metrics } from 'svc/sdk'
import { AgentChanged, AgentKilled, Agents } from '../agents/contract.ts'
import { ApprovalRequested, ApprovalResolved, Approvals } from '../approvals/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Budgets } from '../budgets/contract.ts'
import { Catalog } from '../catalog/contract.ts'
import { Cluster, DrainingChanged, MemberEnded, OwnedCounted } from '../cluster/contract.ts'
import { Uploads } from '../files/contract.ts'
import { Journal, TurnsAbandoned } from '../journal/contract.ts'
import { Inference } from '../providers/contract.ts'
import { DeviceWorkListed } from '../pairing/contract.ts'
import { Screening } from '../screening/contract.ts'
import { CollectProbes } from '../security/contract.ts'
import { SessionCleared, SessionMeasured, SessionRemoving, SessionReset, Sessions } from '../sessions/contract.ts'
import { Usage } from '../usage/contract.ts'
import { composeChat } from './composition.ts'
import { ChatConfig } from './config.ts'
import {
  Chat,
  ModelCallStarting,
  PromptBuilt,
  SystemPromptBuilt,
  SlashCommands,
  ToolCallEnded,
  ToolCalls,
  ToolCallChecking,
  ToolCallStarting,
  TurnContextBuilt,
  TurnEnded,
  TurnEnding,
  TurnFailed,
  Turns,
  TurnStarting,
} from './contract.ts'
import type { TurnResult } from './contract.ts'
import { CommandRegistry } from './entry/command-registry.ts'
import { commandRoutes, slashCommands } from './entry/command-routes.ts'
import { compactRoutes } from './entry/compact-routes.ts'
import { messageRoutes } from './entry/message-routes.ts'
import { sessionStreamRoutes } from './entry/session-stream-routes.ts'
import { ApprovalFeed } from './entry/socket-feeds.ts'
import { chatSocket } from './entry/socket.ts'
import { turnRoutes } from './entry/turn-routes.ts'
import { migrations } from './migrations.ts'
import { chatProbes } from './probes.ts'
import type { CancelledTurns } from './owners/open.ts'
import { TurnLookup } from './turn/lookup.ts'

export default definePlugin({
  name: 'chat',
  version: '1.0.0',
  config: ChatConfig,
  migrations,
  hooks: [
    TurnStarting,
    SystemPromptBuilt,
    PromptBuilt,
    ModelCallStarting,
    TurnContextBuilt,
    TurnEnding,
    TurnEnded,
    TurnFailed,
    ToolCallChecking,
    ToolCallStarting,
    ToolCallEnded,
  ],
  requires: {
    agents: Agents,
    sessions: Sessions,
    journal: Journal,
    audit: Audit,
    inference: Inference,
    broadcast: Broadcast,
    cluster: Cluster,
    daemon: Daemon,
    snapshots: DatabaseSnapshots,
    screening: Screening,
  },
  optional: { usage: Usage, budgets: Budgets, approvals: Approvals, uploads: Uploads, catalog: Catalog },
  provides: { chat: Chat, turns: Turns, slashCommands: SlashCommands, toolCalls: ToolCalls },
  async setup(ctx) {
    const { config, hooks, routes, jobs, metrics, services } = ctx
    const { agents, sessions } = services
    const optional = {
      usage: () => ctx.optional('usage'),
      budgets: () => ctx.optional('budgets'),
      uploads: () => ctx.optional('uploads'),
      approvals: () => ctx.optional('approvals'),
      catalog: () => ctx.optional('catalog'),
    }
    const composed = composeChat({ ...ctx, ...optional })
    const { chat, sessionStream, agentListFeed } = composed
    const turns = new TurnLookup({ ...services, ...optional, ...composed })
    if (services.broadcast.isShared) await composed.share(async (id) => resultOf(turns, id))
    const approvalFeed = new ApprovalFeed()
    const entryDeps = {
      ...services,
      ...optional,
      ...composed,
      turns,
      approvalFeed,
      commands: new CommandRegistry(),
      attachmentRules: {
        screening: { policy: config.screening, service: services.screening },
        maxChars: config.attachment_chars,
      },
      textFlushMs: config.text_flush_ms,
      textFlushChars: config.text_flush_chars,
    }
    routes.add(...messageRoutes(entryDeps))
    routes.add(...turnRoutes({ turns, agents, chat }))
    routes.add(...sessionStreamRoutes(sessionStream, agents, sessions))
    routes.add(...compactRoutes(chat, agents, sessions))
    routes.add(...commandRoutes(entryDeps))
    routes.addSocket(chatSocket(entryDeps))
    jobs.every('agents-updated', config.agents_updated_ms, () => agentListFeed.sendToAll())

    const { history_messages: historyMessages } = config
    hooks.on(SessionMeasured, async (context) => {
      const { measureSession } = await import('./context/measure-session.ts')
      return measureSession({ ...ctx, ...services, historyMessages }, context)
    })
    followSessions(hooks, composed)
    hooks.on(ApprovalRequested, ({ approval }) => approvalFeed.send(approval))
    hooks.on(ApprovalResolved, ({ approval }) => approvalFeed.send(approval))
    // Nobody knows this value; the probe of the secret scanner looks for it.
    const plantedSecret = `planted-${randomBytes(24).toString('base64url')}`
    hooks.on(CollectProbes, (probes) => [...probes, ...chatProbes(ctx.tools, plantedSecret)])
    measureTurns(metrics, composed)
    hooks.on(MemberEnded, ({ id }) => composed.shared()?.ended(id))
    hooks.on(DrainingChanged, () => composed.shared()?.look())
    hooks.on(DeviceWorkListed, async (asked) =>
      (await import('./turn/of-device.ts')).addTurns({ journal: services.journal, chat }, asked),
    )
    hooks.on(DaemonListening, () => composed.shared()?.recoverLater())
    hooks.on(OwnedCounted, async (counts) => [...counts, ...((await composed.shared()?.owners.counts()) ?? [])])
    hooks.on(TurnsAbandoned, async () => {
      // What this process released is not for itself to take up again.
      if (!ctx.leaving.aborted) await composed.resumeTurns()
    })
    await composed.resumeTurns()
    return { chat, turns, slashCommands: slashCommands(entryDeps), toolCalls: composed.toolCalls }
  },
})

type Composed = ReturnType<typeof composeChat>

/** How a turn on record ended. Throws why it did not end well. */
async function resultOf(turns: TurnLookup, id: string): Promise<TurnResult> {
  const turn = await turns.replay(id)
  if (!turn) throw new Refusal('turn_not_found', `No turn ${id}`)
  return turn.result()
}

/** Cancels the turns of sessions and agents that are gone, and tells the readers of a session. */
function followSessions(hooks: Hooks, { chat, sessionStream, toolCallRate, shared }: Composed): void {
  const cancelAll = (where: CancelledTurns): void => {
    chat.cancelAll(where)
    shared()?.cancelAll(where)
  }
  hooks.on(SessionRemoving, async (session) => ({
    ...session,
    busy: session.busy || (await chat.busy(session.sessionId)),
  }))
  hooks.on(SessionReset, ({ agentId, previousId }) => cancelAll({ agentId, sessionId: previousId }))
  hooks.on(SessionCleared, (session) => {
    cancelAll({ ...session, forget: true })
    sessionStream.cleared(session.sessionId)
    shared()?.show(session.sessionId, 'cleared', {})
  })
  hooks.on(AgentKilled, ({ agent }) => {
    cancelAll({ agentId: agent.id })
    toolCallRate.forget(agent.id)
  })
  hooks.on(AgentChanged, ({ agent }) => {
    if (agent.state === 'Stopped') cancelAll({ agentId: agent.id })
    sessionStream.activeChanged(agent.id, agent.sessionId)
  })
}

function measureTurns(metrics: Metrics, { chat, sessionStream, shared }: Composed): void {
  const gauge = (name: `svc_${string}`, help: string, value: () => number): void => {
    metrics.observed(name, help, () => [{ value: value() }])
  }
  gauge('svc_active_sessions', 'Sessions with a turn that waits or runs.', () => chat.activeSessions)
  gauge('svc_chat_session_followers', 'Open streams that follow a session.', () => sessionStream.followers)
  gauge('svc_chat_held_sessions', 'Sessions that this daemon works on, among those on the database.', () => {
    return shared()?.owners.size ?? 0
  })
  gauge('svc_chat_followed_turns', 'Turns of other daemons that are followed here.', () => shared()?.followed ?? 0)
  gauge('svc_chat_open_turns', 'Turns that wait or run.', () => chat.open)
}
