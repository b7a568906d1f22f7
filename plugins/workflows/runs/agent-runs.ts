import { stableId } from 'svc/internal'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { ToolCallContext } from 'svc/sdk'
import type { OpenRuns } from './open.ts'

/** The id follows from the call: the same call never begins two runs. */
export async function start(
  runs: OpenRuns,
  { workflow, input }: { readonly workflow: string; readonly input: string },
  call: ToolCallContext,
) {
  const { service, definitions } = runs
  const { agentId, sessionId, turnId: withinTurn, hops } = call
  const { id: workflowId } = await definitions.resolveFor(agentId, workflow)
  const id = stableId('workflow-run', call.callId)
  const asker = { agentId, withinTurn, sessionId, ...omitUndefined({ hops }) }
  await service.start({ id, workflowId, input, cause: causeOf(agentId), ...asker })
  return { id, service }
}
const causeOf = (agentId: string): string => `agent ${agentId}`

/** A run that the agent began; it hears of no other. Throws `workflow_run_not_found`. */
export async function requireOwn(runs: OpenRuns, id: string, agentId: string): Promise<void> {
  const row = await runs.service.row(id)
  if (row?.cause === causeOf(agentId)) return
  throw new Refusal('workflow_run_not_found', `There is no run ${id} that you began`)
}
