import type { DeviceWork, DeviceWorkAsked } from '../pairing/contract.ts'
import type { AgentService } from './service.ts'

/** Adds the agents that a device made and that are not stopped. */
export async function addAgents(agents: AgentService, asked: DeviceWorkAsked): Promise<DeviceWorkAsked> {
  const found: DeviceWork[] = []
  for (const { event, agentId } of asked.entries) {
    const agent = event === 'agent_spawned' ? await agents.find(agentId) : undefined
    if (!agent || agent.state === 'Stopped') continue
    found.push({
      kind: 'agent',
      id: agent.id,
      name: agent.name,
      agentId: agent.id,
      ...agents.stopping(agent, asked.reason),
    })
  }
  return { ...asked, found: [...asked.found, ...found] }
}
