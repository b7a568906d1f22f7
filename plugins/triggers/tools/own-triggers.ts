import { Refusal } from 'svc/sdk'
import type { ToolCallContext } from 'svc/sdk'
import type { Agents } from '../../agents/contract.ts'
import { isLabel } from '../../sessions/contract.ts'
import type { Label } from '../../sessions/contract.ts'
import type { Runtime } from '../runtime.ts'
import type { Author } from '../service.ts'
import type { Trigger } from '../trigger.ts'

const MAX_LISTED = 200

/** Who a trigger of an agent asks: the agent itself, or one that its manifest lets it write to. */
export async function targetOf(agents: Agents, caller: string, name: string | undefined): Promise<string> {
  if (name === undefined || name === '') return caller
  const [from, target] = await Promise.all([agents.require(caller), agents.resolve(name)])
  if (target.id === caller || agents.mayMessage(from, target)) return target.id
  throw new Refusal(
    'forbidden',
    `This agent may not make triggers for "${name}": capabilities.agent_message of its manifest does not name it.`,
  )
}

/** Where the words of a trigger come from that an agent makes. */
export function authorOf(
  {
    agentId,
    labels = [],
    onBehalf: others = [],
    hops,
  }: Pick<ToolCallContext, 'agentId' | 'labels' | 'onBehalf' | 'hops'>,
  target: string,
): Author {
  const onBehalf = [...new Set([...others, agentId])]
  const known = labels.filter(isLabel)
  const all = target === agentId ? known : [...new Set<Label>([...known, 'UntrustedAgent'])]
  return { agentId, onBehalf, labels: all, hops }
}

/** Triggers that an agent made, and those that are for it. */
export const triggersOf = ({ store }: Runtime, agentId: string): Promise<readonly Trigger[]> =>
  store.ofAgent(agentId, MAX_LISTED)

/** A trigger that the agent itself made: it changes no other. Throws `trigger_not_found` and `forbidden`. */
export async function requireOwn({ triggers }: Runtime, id: string, agentId: string): Promise<Trigger> {
  const trigger = await triggers.require(id)
  if (trigger.createdBy === agentId) return trigger
  throw new Refusal('forbidden', 'This agent did not make that trigger: a person has to change it.')
}
