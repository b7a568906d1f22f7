import { findNearest, suggest } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Agent, Agents } from '../../agents/contract.ts'
import type { Workflow } from '../definition.ts'

/**
 * Whether an agent may run a workflow, which makes all agents of the workflow act: the operator lets it.
 * A name counts only for an agent that no agent made, since agents choose the names of those they make.
 */
export function mayRun(
  { id, name, manifest }: Pick<Agent, 'id' | 'name' | 'manifest'>,
  { runBy }: Pick<Workflow, 'runBy'>,
): boolean {
  if (runBy.includes('*') || runBy.includes(id)) return true
  return runBy.includes(name) && manifest.metadata['parent_agent_id'] === undefined
}

/** Throws `invalid_request` for an agent that does not exist. */
export async function checkRunBy(
  runBy: readonly string[],
  agents: Pick<Agents, 'find' | 'findByName' | 'list'>,
): Promise<void> {
  for (const [index, agent] of runBy.entries()) {
    if (agent === '*' || (await agents.find(agent)) || (await agents.findByName(agent))) continue
    const names = (await agents.list()).map(({ name }) => name)
    const message = `run_by: there is no agent "${agent}"${suggest(findNearest(agent, names))}`
    throw new Refusal('invalid_request', message, { details: { issues: [{ path: `run_by.${index}`, message }] } })
  }
}
