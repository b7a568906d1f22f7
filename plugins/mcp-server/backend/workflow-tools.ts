import { v7 } from 'uuid'
import * as v from 'valibot'
import { parse } from 'svc/sdk'
import type { Hooks } from 'svc/sdk'
import { WorkflowStepEnded } from '../../workflows/contract.ts'
import type { WorkflowInfo, WorkflowRuns } from '../../workflows/contract.ts'
import type { McpObject } from '../contract.ts'
import type { McpCall } from './backend.ts'

const Input = v.object({ input: v.optional(v.string(), '') })

export function workflowTool(name: string, workflow: WorkflowInfo): McpObject {
  return {
    name,
    title: workflow.name,
    description: `Run the workflow ${workflow.name} and get its output.${
      workflow.description === '' ? '' : ` ${workflow.description}`
    }`,
    inputSchema: {
      type: 'object',
      properties: { input: { type: 'string', description: 'What the workflow gets as its input.' } },
    },
    outputSchema: {
      type: 'object',
      properties: { run_id: { type: 'string' }, state: { type: 'string' }, output: { type: 'string' } },
      required: ['run_id', 'state', 'output'],
    },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true },
  }
}

/** Runs workflows for clients. */
export class WorkflowCaller {
  readonly #stepEnded = new Map<string, (step: string, state: string) => void>()
  readonly #isStopping: () => boolean
  constructor(hooks: Pick<Hooks, 'on'>, isStopping: () => boolean) {
    this.#isStopping = isStopping
    hooks.on(WorkflowStepEnded, ({ runId, step, state }) => this.#stepEnded.get(runId)?.(step, state))
  }

  async call(runs: WorkflowRuns, workflow: WorkflowInfo, args: unknown, call: McpCall): Promise<McpObject> {
    const { input } = parse(Input, args, 'arguments')
    const id = v7()
    let ended = 0
    if (call.progress)
      this.#stepEnded.set(id, (step, state) =>
        call.progress?.({ progress: ++ended, message: `The step ${step} is ${state}` }),
      )
    try {
      await runs.start({ id, workflowId: workflow.id, input, cause: 'mcp', hops: call.hops })
      const run = await runs.settled(id, call.signal)
      const output = run.output ?? run.error ?? ''
      return {
        content: [{ type: 'text', text: output === '' ? `The run ${id} is ${run.state}.` : output }],
        structuredContent: { run_id: id, state: run.state, output },
        ...(run.state !== 'Completed' && { isError: true }),
      }
    } catch (error) {
      if (call.signal.aborted && !this.#isStopping()) await runs.cancel(id, 'the client does not wait for it any more')
      throw error
    } finally {
      this.#stepEnded.delete(id)
    }
  }
}
