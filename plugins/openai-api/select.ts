import { Refusal } from 'svc/sdk'
import type { Agent, Agents } from '../agents/contract.ts'

export const PREFIX = 'svc:'
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The agent a `model` names: `svc:<name>`, an id, or a name. */
export async function namedAgent(agents: Agents, model: string): Promise<Agent | undefined> {
  const named = model.startsWith(PREFIX) ? model.slice(PREFIX.length) : model
  const found = UUID.test(named) ? await agents.find(named.toLowerCase()) : undefined
  return found ?? (named === '' ? undefined : agents.findByName(named))
}

/** The agent a `model` stands for (Interface 4.12): the one it names, and for anything else the first agent. */
export async function selectAgent(agents: Agents, model: string | null): Promise<Agent> {
  const agent = (await namedAgent(agents, model ?? '')) ?? (await agents.list())[0]
  if (!agent) throw new Refusal('model_not_found', `The model '${model ?? ''}' does not exist: there are no agents`)
  return agent
}
