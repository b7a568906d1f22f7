import * as v from 'valibot'
import { commandLine, exits, Failure, findNearest, suggest } from 'svc/cli'
import type { DaemonClient } from 'svc/cli'

export const AgentItem = v.object({
  id: v.string(),
  name: v.string(),
  state: v.string(),
  created_at: v.optional(v.string(), ''),
  model_provider: v.optional(v.string(), ''),
  model_name: v.optional(v.string(), ''),
})
export type AgentItem = v.InferOutput<typeof AgentItem>

export function listAgents(client: DaemonClient): Promise<readonly AgentItem[]> {
  return client.call('GET', '/api/agents', v.array(AgentItem))
}

/**
 * An agent by id or name; without one the agent "assistant", else the oldest. Throws a `Failure` that names those there
 * are.
 */
export async function requireAgent(client: DaemonClient, idOrName: string | undefined): Promise<AgentItem> {
  const agents = await listAgents(client)
  const found =
    idOrName === undefined
      ? (agents.find((agent) => agent.name === 'assistant') ?? agents[0])
      : (agents.find((agent) => agent.id === idOrName) ?? agents.find((agent) => agent.name === idOrName))
  if (found) return found
  if (agents.length === 0)
    throw new Failure(
      exits.notFound,
      'there are no agents',
      `spawn one with ${commandLine('agent spawn <manifest.toml>')}`,
    )
  const names = agents.map((agent) => agent.name)
  throw new Failure(
    exits.notFound,
    `there is no agent "${idOrName ?? ''}"${suggest(findNearest(idOrName ?? '', names))}`,
    `there are: ${names.join(', ')}`,
  )
}
