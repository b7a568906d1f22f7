import { randomBytes } from 'node:crypto'
import { Daemon } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { AgentChanged, AgentKilled, Agents } from '../agents/contract.ts'
import { ApprovalRequested, ApprovalResolved, Approvals } from '../approvals/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Budgets } from '../budgets/contract.ts'
import { Catalog } from '../catalog/contract.ts'
import { Uploads } from '../files/contract.ts'
import { Journal } from '../journal/contract.ts'
import { Inference } from '../providers/contract.ts'
import { Screening } from '../screening/contract.ts'
import { ProbesListed } from '../security/contract.ts'
import { SessionCleared, SessionMeasured, SessionRemoving, SessionReset, Sessions } from '../sessions/contract.ts'
import { Usage } from '../usage/contract.ts'
import { ApprovalFeed } from './entry/approval-feed.ts'
import { commandRoutes } from './entry/command-routes.ts'
import { compactRoutes } from './entry/compact-routes.ts'
import { ChatConfig } from './config.ts'
import {
  Chat,
  ModelCallStarting,
  PromptBuilt,
  ToolCallEnded,
  ToolCallStarting,
  TurnEnded,
  TurnFailed,
  Turns,
  TurnStarting,
} from './contract.ts'
import { feedRoutes } from './entry/session-stream-routes.ts'
import { measureSession } from './context/measure-session.ts'
import { composeChat } from './composition.ts'
import { migrations } from './migrations.ts'
import { chatProbes } from './probes.ts'
import { chatRoutes } from './entry/message-routes.ts'
import { chatSocket } from './entry/socket.ts'
import { turnRoutes } from './entry/turn-routes.ts'
import { TurnLookup } from './turn/lookup.ts'

export default definePlugin({
  name: 'chat',
  version: '1.0.0',
  config: ChatConfig,
  migrations,
  hooks: [TurnStarting, PromptBuilt, ModelCallStarting, TurnEnded, TurnFailed, ToolCallStarting, ToolCallEnded],
  requires: {
    agents: Agents,
    sessions: Sessions,
    journal: Journal,
    audit: Audit,
    inference: Inference,
    daemon: Daemon,
    screening: Screening,
  },
  optional: { usage: Usage, budgets: Budgets, approvals: Approvals, uploads: Uploads, catalog: Catalog },
  provides: { chat: Chat, turns: Turns },
  async setup(ctx) {
    const { config, hooks, routes, jobs, metrics, services } = ctx
    const { chat, feed, agentListFeed, background, onDefect, pace, resumeTurns } = composeChat({
      ...ctx,
      usage: () => ctx.optional('usage'),
      budgets: () => ctx.optional('budgets'),
    })
    const [usage, uploads, approvals, catalog] = [
      () => ctx.optional('usage'),
      () => ctx.optional('uploads'),
      () => ctx.optional('approvals'),
      () => ctx.optional('catalog'),
    ]
    const [turns, attached] = [
      new TurnLookup({ ...services, chat, usage }),
      {
        screening: { policy: config.screening, service: services.screening },
        attachmentChars: config.attachment_chars,
      },
    ]
    routes.add(
      ...chatRoutes({ chat, turns, agents: services.agents, uploads, attached }),
      ...turnRoutes(turns, services.agents, chat),
    )
    routes.add(...feedRoutes(feed, services.agents, services.sessions))
    routes.add(...compactRoutes(chat, services.agents, services.sessions))
    hooks.on(SessionMeasured, (context) =>
      measureSession({ ...ctx, ...services, historyMessages: config.history_messages }, context),
    )
    hooks.on(SessionRemoving, (session) => ({ ...session, busy: session.busy || chat.busy(session.sessionId) }))
    const approvalFeed = new ApprovalFeed()
    const commandParts = { ...services, chat, approvals, usage, catalog }
    routes.add(...commandRoutes(commandParts))
    routes.addSocket(
      chatSocket({
        ...commandParts,
        uploads,
        approvalFeed,
        agentListFeed,
        background,
        onDefect,
        attached,
        textFlushMs: config.text_flush_ms,
        textFlushChars: config.text_flush_chars,
      }),
    )
    jobs.every('agents-updated', config.agents_updated_ms, () => agentListFeed.tick())
    hooks.on(ApprovalRequested, ({ approval }) => approvalFeed.tell(approval))
    hooks.on(ApprovalResolved, ({ approval }) => approvalFeed.tell(approval))
    hooks.on(AgentKilled, ({ agent }) => chat.abandon({ agentId: agent.id }))
    hooks.on(AgentKilled, ({ agent }) => pace.forget(agent.id))
    hooks.on(AgentChanged, ({ agent }) => {
      if (agent.state === 'Stopped') chat.abandon({ agentId: agent.id })
    })
    hooks.on(SessionReset, ({ agentId, previousId }) => chat.abandon({ agentId, sessionId: previousId }))
    hooks.on(SessionCleared, (where) => {
      chat.abandon({ ...where, forget: true })
      feed.cleared(where.sessionId)
    })
    hooks.on(AgentChanged, ({ agent }) => feed.active(agent.id, agent.sessionId))
    // Nobody knows this value; the probe of the secret scanner looks for it.
    const plantedSecret = `planted-${randomBytes(24).toString('base64url')}`
    hooks.on(ProbesListed, (probes) => [...probes, ...chatProbes(ctx.tools, plantedSecret)])
    metrics.observed('svc_active_sessions', 'Sessions with a turn that waits or runs.', () => [
      { value: chat.activeSessions },
    ])
    metrics.observed('svc_chat_session_followers', 'Open streams that follow a session', () => [
      { value: feed.followers },
    ])
    metrics.observed('svc_chat_open_turns', 'Turns that wait or run', () => [{ value: chat.open }])
    await resumeTurns()
    return { chat, turns }
  },
})
