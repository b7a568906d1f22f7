import { toIso } from 'svc/internal'
import type * as v from 'valibot'
import type { McpServerView, McpToolView } from '../contract.ts'
import { riskOf } from '../tools/risk.ts'
import type { ServerView } from '../schema.ts'
import type { ToolSet } from '../tools/registry.ts'
import type { Server } from './server.ts'

/** What the API says of a server. */
export function viewOf(server: Server, toolSet: ToolSet): McpServerView {
  const { config, listing } = server
  const { name, transport, timeout_secs, lazy, enabled, origin, trust } = config
  return {
    name,
    transport,
    command: config.command ?? null,
    args: config.args,
    url: config.url ?? null,
    headers: Object.keys(config.headers),
    env: [...new Set([...config.env, ...config.credentials])],
    network: config.network,
    timeout_secs,
    lazy,
    enabled,
    origin,
    trust: transport === 'stdio' ? trust : 'confined',
    state: server.state,
    connected: server.state === 'connected',
    error: server.error ?? null,
    server_info: listing?.serverInfo ?? null,
    protocol_version: listing?.protocolVersion ?? null,
    instructions: listing?.instructions ?? null,
    pid: server.pid ?? null,
    restarts: server.restarts,
    calls: server.calls,
    failed_calls: server.failedCalls,
    connected_since: server.connectedAt === undefined ? null : toIso(server.connectedAt),
    last_used: server.lastUsed === undefined ? null : toIso(server.lastUsed),
    tools: toolViews(server, toolSet),
  }
}

function toolViews(server: Server, toolSet: ToolSet): readonly McpToolView[] {
  return server.tools.map(({ tool, usable, reason }) => {
    const name = toolSet.nameOf(server.name, tool.name)
    return {
      name: name ?? tool.name,
      tool: tool.name,
      description: tool.description ?? '',
      risk: riskOf(server.config, tool),
      usable: usable && name !== undefined && server.config.enabled,
      reason: name === undefined ? 'another tool has its name' : (reason ?? null),
      input_schema: tool.inputSchema,
    }
  })
}

/** A copy, as the answer of a route is. */
export const toAnswer = (view: McpServerView): v.InferOutput<typeof ServerView> => ({
  ...view,
  args: [...view.args],
  headers: [...view.headers],
  env: [...view.env],
  network: [...view.network],
  server_info: view.server_info && { ...view.server_info },
  tools: view.tools.map((tool) => ({ ...tool, input_schema: { ...tool.input_schema } })),
})
