import { PluginChanged } from 'svc/internal'
import type { Hooks } from 'svc/sdk'
import { AgentChanged, AgentKilled, AgentSpawned } from '../agents/contract.ts'
import type { Agents } from '../agents/contract.ts'
import { TurnEnded } from '../chat/contract.ts'
import { KeyValueChanged } from '../kv/contract.ts'
import { McpServerChanged } from '../mcp/contract.ts'
import { WorkflowChanged } from '../workflows/contract.ts'
import type { McpExports } from './contract.ts'
import { AGENTS_URI, agentUri } from './providers/agents.ts'
import { memoryUri } from './providers/memory.ts'
import { sessionUri } from './providers/sessions.ts'

/** Tells clients what changes. */
export function announceChanges(hooks: Pick<Hooks, 'on'>, exports: McpExports, agents: Agents): void {
  const agentChanged = ({ agent }: { readonly agent: { readonly name: string } }): void => {
    exports.updated(AGENTS_URI)
    exports.updated(agentUri(agent.name))
    exports.listChanged('tools')
  }
  hooks.on(AgentChanged, agentChanged)
  for (const hook of [AgentSpawned, AgentKilled])
    hooks.on(hook, (change) => {
      agentChanged(change)
      exports.listChanged('resources')
    })
  hooks.on(TurnEnded, ({ result }) => exports.updated(sessionUri(result.sessionId)))
  for (const hook of [WorkflowChanged, PluginChanged, McpServerChanged])
    hooks.on(hook as typeof WorkflowChanged, () => exports.listChanged('tools'))
  hooks.on(KeyValueChanged, async ({ agentId, key }) => {
    const agent = await agents.find(agentId)
    if (!agent) return
    for (const name of [agent.name, agentId]) {
      exports.updated(memoryUri(name))
      if (key !== undefined) exports.updated(memoryUri(name, key))
    }
  })
}
