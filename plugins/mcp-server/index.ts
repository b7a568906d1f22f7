import { Daemon, PluginChanged } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import type { Hooks } from 'svc/sdk'
import { AgentChanged, AgentKilled, Agents, AgentSpawned } from '../agents/contract.ts'
import { Approvals } from '../approvals/contract.ts'
import { Chat, ToolCalls, TurnEnded } from '../chat/contract.ts'
import { KeyValue, KeyValueChanged } from '../kv/contract.ts'
import { McpServerChanged, McpServers } from '../mcp/contract.ts'
import { Sessions } from '../sessions/contract.ts'
import { WorkflowChanged, WorkflowRuns } from '../workflows/contract.ts'
import { Settings } from './config.ts'
import { McpExports } from './contract.ts'
import { ExportRegistry } from './exports.ts'
import { agentResources, AGENTS_URI, agentUri } from './providers/agents.ts'
import { memoryResources, memoryUri } from './providers/memory.ts'
import { sessionResources, sessionUri } from './providers/sessions.ts'
import { mcpRoutes } from './routes.ts'
import type { Runtime } from './runtime.ts'

const MINUTE_MS = 60_000

export default definePlugin({
  name: 'mcp-server',
  version: '1.0.0',
  config: Settings,
  requires: { agents: Agents, chat: Chat, daemon: Daemon, sessions: Sessions, toolCalls: ToolCalls },
  optional: { approvals: Approvals, kv: KeyValue, servers: McpServers, workflows: WorkflowRuns },
  provides: { exports: McpExports },
  setup(ctx) {
    const { config, hooks, jobs, leaving, log, metrics, optional, own, routes, services, signal, tools } = ctx
    const exports = new ExportRegistry()
    let opened: Promise<Runtime> | undefined
    let current: Runtime | undefined
    const open = async (): Promise<Runtime> => {
      const { Runtime } = await import('./runtime.ts')
      return (current = new Runtime({
        ...services,
        config,
        exports,
        hooks,
        log,
        tools,
        version: services.daemon.build.version,
        approvals: () => optional('approvals'),
        servers: () => optional('servers'),
        workflows: () => optional('workflows'),
        now: () => Date.now(),
        isStopping: () => leaving.aborted || signal.aborted,
      }))
    }
    const runtime = (): Promise<Runtime> => (opened ??= open())
    const close = async (): Promise<void> => (await opened)?.close()
    own('sessions', close)
    own('agents', exports.resources(agentResources(services.agents)))
    own(
      'conversations',
      exports.resources(sessionResources(services.agents, services.sessions, config.max_session_messages)),
    )
    own('memory', exports.resources(memoryResources(services.agents, () => optional('kv'))))
    routes.add(
      ...mcpRoutes({
        maxBodyBytes: config.max_body_bytes,
        handle: async (request, server) => (await runtime()).handle(request, server),
      }),
    )
    announce(hooks, () => (current ? exports : undefined), services.agents)
    hooks.on(McpServerChanged, async ({ name, state }) => {
      if (current) exports.listChanged('tools')
      if (state === 'removed') await (await opened)?.forget(name)
    })
    jobs.every('idle sessions', MINUTE_MS, async () => (await opened)?.sessions.sweep())
    metrics.observed('svc_mcp_server_sessions', 'Open sessions of clients of MCP.', () => [
      { value: current?.sessions.size ?? 0 },
    ])
    return { exports }
  },
})

/** Tells clients what changes, once there are any. */
function announce(hooks: Hooks, followed: () => ExportRegistry | undefined, agents: Agents): void {
  const agentChanged = ({ agent }: { readonly agent: { readonly name: string } }): void => {
    followed()?.updated(AGENTS_URI)
    followed()?.updated(agentUri(agent.name))
    followed()?.listChanged('tools')
  }
  hooks.on(AgentChanged, agentChanged)
  for (const hook of [AgentSpawned, AgentKilled])
    hooks.on(hook, (change) => {
      agentChanged(change)
      followed()?.listChanged('resources')
    })
  hooks.on(TurnEnded, ({ result }) => followed()?.updated(sessionUri(result.sessionId)))
  hooks.on(WorkflowChanged, () => followed()?.listChanged('tools'))
  hooks.on(PluginChanged, () => followed()?.listChanged('tools'))
  hooks.on(KeyValueChanged, async ({ agentId, key }) => {
    const agent = followed() && (await agents.find(agentId))
    if (!agent) return
    for (const name of [agent.name, agentId]) {
      followed()?.updated(memoryUri(name))
      if (key !== undefined) followed()?.updated(memoryUri(name, key))
    }
  })
}
