import { findNearest, matchesWildcard, suggest } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Agent, Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'

interface Deps {
  readonly agents: Agents
  readonly audit: Pick<Audit, 'write'>
}

/** An agent by id or name. Throws `agent_not_found`, and `forbidden` when `agentId` may not message that agent. */
export async function resolveAssignee({ agents, audit }: Deps, name: string, agentId?: string): Promise<Agent> {
  const target = await findAgent(agents, name)
  if (agentId === undefined || agentId === target.id) return target
  const { manifest } = await agents.require(agentId)
  const may = manifest.capabilities.agent_message.some(
    (pattern) => pattern === target.id || matchesWildcard(pattern, target.name),
  )
  if (may) return target
  await audit.write({
    event: 'capability_check',
    agentId,
    details: `denied: task for agent "${target.name}"`,
  })
  throw new Refusal(
    'forbidden',
    `This agent may not give tasks to "${target.name}": capabilities.agent_message of its manifest does not name it.`,
  )
}

/** By id or by name. Throws `agent_not_found`. */
export async function findAgent(agents: Agents, name: string): Promise<Agent> {
  const isId = /^[0-9a-f-]{36}$/i.test(name)
  const found = (isId ? await agents.find(name.toLowerCase()) : undefined) ?? (await agents.findByName(name))
  if (found) return found
  const names = (await agents.list()).map((one) => one.name)
  throw new Refusal(
    'agent_not_found',
    `There is no agent "${name}" to assign the task to${suggest(findNearest(name, names))}`,
  )
}
