import { Refusal } from 'svc/sdk'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { McpCaller } from './backend.ts'

/** The agent that acts for a client: the one it names, the configured one, or the first. */
export function actingAgent(agents: Agents, { agent }: McpCaller, configured: string | undefined): Promise<Agent> {
  if (agent !== undefined && agent.length > 200)
    throw new Refusal('agent_not_found', 'X-Svc-Agent-Id: there is no such agent')
  return agent === undefined ? agents.forCaller(configured) : agents.resolve(agent)
}
