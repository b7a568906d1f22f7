import { Refusal } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import type { Approvals } from '../../approvals/contract.ts'
import type { Definitions } from '../definition.ts'

export interface UnattendedDeps {
  readonly definitions: Pick<Definitions, 'resolveFor'>
  readonly agents: Pick<Agents, 'require' | 'mayUse'>
  readonly approvals: Pick<Approvals, 'asks'> | undefined
}
const TOOL = { name: 'workflow_start', risk: 'execute' } as const

/**
 * The id of a workflow that an agent may have run later, by a schedule or a trigger that it made: one that it may run
 * at any time without asking a person.
 */
export async function resolveUnattended(
  { definitions, agents, approvals }: UnattendedDeps,
  agentId: string,
  idOrName: string,
): Promise<string> {
  const { id } = await definitions.resolveFor(agentId, idOrName)
  const agent = await agents.require(agentId)
  if (!agents.mayUse(agent, TOOL))
    throw new Refusal('forbidden', `The agent "${agent.name}" may not use ${TOOL.name}, so nothing may run it for it`)
  if (approvals?.asks(agent, TOOL))
    throw new Refusal(
      'forbidden',
      `A person approves each ${TOOL.name} of the agent "${agent.name}"; have it asked to use that tool instead`,
    )
  return id
}
