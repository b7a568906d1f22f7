import type { Agent, Agents } from '../../agents/contract.ts'

type UsableTool = Parameters<Agents['mayUse']>[1]

/**
 * Why the agents that asked for a turn keep it from a tool; `undefined` when each of them may use the tool itself.
 * Asking a more privileged agent gives nobody more rights than it has (Security facts 1.12).
 */
export async function refusedByRequesters(
  agents: Pick<Agents, 'find' | 'mayUse'>,
  agentIds: readonly string[],
  tool: UsableTool,
): Promise<string | undefined> {
  for (const id of new Set(agentIds)) {
    const agent: Agent | undefined = await agents.find(id)
    if (!agent) return `An agent that requested this is gone: nobody knows whether it may ${tool.name}`
    if (!agents.mayUse(agent, tool)) return `"${agent.name}", who requested this, may not use ${tool.name} itself`
  }
  return undefined
}
