import type { WorkflowRuns } from '../../contract.ts'
import type { Definitions } from '../../definition.ts'
import { refuse } from './refuse.ts'
import type { BuiltInStep } from './built-in.ts'

export interface WorkflowStepDeps {
  readonly definitions: Pick<Definitions, 'find' | 'findByName'>
  readonly runs: Pick<WorkflowRuns, 'find'>
  /** Begins a run inside of another; throws when there are too many inside each other. */
  readonly startChild: (child: {
    readonly id: string
    readonly workflowId: string
    readonly input: string
    readonly parentRunId: string
    readonly parentKey: string
  }) => Promise<void>
}

/** Runs another workflow and waits for its end without holding anything. Its run has the key of the attempt as its id. */
export function workflowStep({ definitions, runs, startChild }: WorkflowStepDeps): BuiltInStep {
  return {
    name: 'workflow',
    check({ workflow }) {
      if (typeof workflow !== 'string' || workflow === '') throw refuse('with.workflow', 'the id or name of a workflow')
    },
    async run({ runId, key, with: { workflow, prompt } }) {
      const child = await runs.find(key)
      if (!child) {
        const wanted = String(workflow)
        const found = (await definitions.find(wanted)) ?? (await definitions.findByName(wanted))
        if (!found) throw new Error(`there is no workflow "${wanted}"`)
        const input = String(prompt)
        await startChild({ id: key, workflowId: found.id, input, parentRunId: runId, parentKey: key })
      }
      if (child?.state === 'Completed') return { outcome: 'done', output: child.output ?? '' }
      if (child?.state === 'Failed') throw new Error(`run ${key} of ${String(workflow)} failed: ${child.error ?? ''}`)
      if (child?.state === 'Cancelled') throw new Error(`run ${key} of ${String(workflow)} was cancelled`)
      return { outcome: 'waiting', state: null }
    },
  }
}
