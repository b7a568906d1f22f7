import { Daemon } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Approvals } from '../approvals/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Chat, ToolCalls } from '../chat/contract.ts'
import { KeyValue } from '../kv/contract.ts'
import { McpServerChanged, McpServers } from '../mcp/contract.ts'
import { Sessions } from '../sessions/contract.ts'
import { WorkflowRuns } from '../workflows/contract.ts'
import { Settings } from './config.ts'
import { McpExports } from './contract.ts'
import { ExportRegistry } from './exports.ts'
import { mcpRoutes } from './routes.ts'
import type { Runtime } from './runtime.ts'

const MINUTE_MS = 60_000

export default definePlugin({
  name: 'mcp-server',
  version: '1.0.0',
  config: Settings,
  requires: { agents: Agents, audit: Audit, chat: Chat, daemon: Daemon, sessions: Sessions, toolCalls: ToolCalls },
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
        kv: () => optional('kv'),
        servers: () => optional('servers'),
        workflows: () => optional('workflows'),
        now: () => Date.now(),
        isStopping: () => leaving.aborted || signal.aborted,
      }))
    }
    const runtime = (): Promise<Runtime> => (opened ??= open())
    const close = async (): Promise<void> => (await opened)?.close()
    own('sessions', close)
    routes.add(
      ...mcpRoutes({
        maxBodyBytes: config.max_body_bytes,
        handle: async (request, server) => (await runtime()).handle(request, server),
      }),
    )
    hooks.on(McpServerChanged, async ({ name, state }) => {
      if (state === 'removed') await (await opened)?.forget(name)
      if (state === 'connected') await (await opened)?.reconnected(name)
    })
    jobs.every('idle sessions', MINUTE_MS, async () => (await opened)?.sessions.sweep())
    metrics.observed('svc_mcp_server_sessions', 'Open sessions of clients of MCP.', () => [
      { value: current?.sessions.size ?? 0 },
    ])
    return { exports }
  },
})
