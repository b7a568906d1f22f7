import { Refusal } from 'svc/sdk'
import type { Agent, Agents } from '../agents/contract.ts'

export const PREFIX = 'svc:'
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The agent a `model` stands for (Interface 4.12): `svc:<name>`, an id, a name, and for anything else the first agent. */
export async function selectAgent(agents: Agents, model: string | null): Promise<Agent> {
  const wanted = model ?? ''
  const named = wanted.startsWith(PREFIX) ? wanted.slice(PREFIX.length) : wanted
  const found = UUID.test(named) ? await agents.find(named.toLowerCase()) : undefined
  const agent = found ?? (named === '' ? undefined : await agents.findByName(named)) ?? (await agents.list())[0]
  if (!agent) throw new Refusal('model_not_found', `The model '${wanted}' does not exist: there is no agent`)
  return agent
}
