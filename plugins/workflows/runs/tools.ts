import * as v from 'valibot'
import { defineTool, Refusal } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { LazyRuns } from './index.ts'

const WAIT_SECS = 3_600
const runId = v.pipe(v.string(), v.minLength(1), v.maxLength(64))
const Start = v.object({
  workflow: v.pipe(v.string(), v.minLength(1), v.maxLength(256), v.description('Id or name of the workflow')),
  input: v.optional(v.pipe(v.string(), v.maxLength(500_000)), ''),
})
/** Agents and other systems wrote what a run returns. */
const written = { labels: ['UntrustedAgent', 'ExternalNetwork'] } as const

const agentRuns = () => import('./agent-runs.ts')

export function runTools(runs: LazyRuns): readonly AnyTool[] {
  return [runTool(runs), startTool(runs), statusTool(runs), cancelTool(runs)]
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
      const { id, service } = await (await agentRuns()).start(await runs(), input, call)
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
    run: async (input, call) =>
      JSON.stringify({ run_id: (await (await agentRuns()).start(await runs(), input, call)).id, status: 'pending' }),
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
      await (await agentRuns()).requireOwn(await runs(), id, agentId)
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
      await (await agentRuns()).requireOwn(await runs(), id, agentId)
      const { service } = await runs()
      const { state } = await service.require(id)
      if (!(await service.cancel(id, `by agent ${agentId}`)))
        throw new Refusal('conflict', `The run is ${state} already`)
      return 'The run is cancelled.'
    },
  })
}
