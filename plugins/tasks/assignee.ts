import { Refusal } from 'svc/sdk'
import type { Agent, Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'

interface Deps {
  readonly agents: Agents
  readonly audit: Pick<Audit, 'write'>
}

/** An agent by id or name. Throws `agent_not_found`, and `forbidden` when `agentId` may not message that agent. */
export async function resolveAssignee({ agents, audit }: Deps, name: string, agentId?: string): Promise<Agent> {
  const target = await agents.resolve(name)
  if (agentId === undefined || agentId === target.id) return target
  if (agents.mayMessage(await agents.require(agentId), target)) return target
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
