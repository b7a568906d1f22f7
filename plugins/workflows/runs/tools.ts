import * as v from 'valibot'
import { stableId } from 'svc/internal'
import { defineTool, Refusal } from 'svc/sdk'
import type { AnyTool, ToolCallContext } from 'svc/sdk'
import type { LazyRuns } from './index.ts'

const WAIT_SECS = 3_600
const runId = v.pipe(v.string(), v.minLength(1), v.maxLength(64))
const Start = v.object({
  workflow: v.pipe(v.string(), v.minLength(1), v.maxLength(256), v.description('Id or name of the workflow')),
  input: v.optional(v.pipe(v.string(), v.maxLength(500_000)), ''),
})
/** Agents and other systems wrote what a run returns. */
const written = { labels: ['UntrustedAgent', 'ExternalNetwork'] } as const

export function runTools(runs: LazyRuns): readonly AnyTool[] {
  return [runTool(runs), startTool(runs), statusTool(runs), cancelTool(runs)]
}

/** The id follows from the call: the same call never begins two runs. */
async function start(runs: LazyRuns, { workflow, input }: v.InferOutput<typeof Start>, call: ToolCallContext) {
  const { service, definitions } = await runs()
  const { agentId, sessionId, turnId: withinTurn } = call
  const { id: workflowId } = await definitions.resolveFor(agentId, workflow)
  const id = stableId('workflow-run', call.callId)
  await service.start({ id, workflowId, input, cause: causeOf(agentId), agentId, withinTurn, sessionId })
  return { id, service }
}
const causeOf = (agentId: string): string => `agent ${agentId}`

/** A run that the agent began, or of a workflow that it made; it hears of no other. Throws `workflow_run_not_found`. */
async function requireOwn(runs: LazyRuns, id: string, agentId: string): Promise<void> {
  const row = await (await runs()).service.row(id)
  if (row && (row.cause === causeOf(agentId) || row.definition.madeBy === agentId)) return
  throw new Refusal('workflow_run_not_found', `There is no run ${id} that you began`)
}

function runTool(runs: LazyRuns): AnyTool {
  return defineTool({
    ...written,
    name: 'workflow_run',
    risk: 'execute',
    refuses: ['Secret'],
    timeoutSecs: WAIT_SECS,
    description: 'Run a workflow and wait for its output. Answers JSON with run_id, status and output or error.',
    input: Start,
    async run(input, call) {
      const { id, service } = await start(runs, input, call)
      const { state, output, error } = await service.settled(id, call.signal)
      return JSON.stringify({ run_id: id, status: state.toLowerCase(), output, error })
    },
  })
}
function startTool(runs: LazyRuns): AnyTool {
  return defineTool({
    name: 'workflow_start',
    risk: 'execute',
    refuses: ['Secret'],
    description: 'Begin a run of a workflow without waiting for it. Answers JSON with run_id for workflow_status.',
    input: Start,
    run: async (input, call) => JSON.stringify({ run_id: (await start(runs, input, call)).id, status: 'pending' }),
  })
}
function statusTool(runs: LazyRuns): AnyTool {
  return defineTool({
    ...written,
    name: 'workflow_status',
    risk: 'read',
    polls: true,
    description:
      'How far a run of a workflow that you began is: its state, its steps, and its output or error. Answers JSON.',
    input: v.object({ run_id: runId }),
    async run({ run_id: id }, { agentId }) {
      await requireOwn(runs, id, agentId)
      const { state, output, error, step_results: steps } = await (await runs()).view(id)
      return JSON.stringify({
        run_id: id,
        status: state.toLowerCase(),
        output,
        error,
        steps: steps.map(({ step_name: name, state: how, error: why }) => ({ step: name, state: how, error: why })),
      })
    },
  })
}
function cancelTool(runs: LazyRuns): AnyTool {
  return defineTool({
    name: 'workflow_cancel',
    risk: 'write',
    description: 'Cancel a run of a workflow that you began.',
    input: v.object({ run_id: runId }),
    async run({ run_id: id }, { agentId }) {
      await requireOwn(runs, id, agentId)
      const { service } = await runs()
      const { state } = await service.require(id)
      if (!(await service.cancel(id, `by agent ${agentId}`)))
        throw new Refusal('conflict', `The run is ${state} already`)
      return 'The run is cancelled.'
    },
  })
}
