import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { WorkflowDefinitions } from './definitions/service.ts'

const MAX_LISTED = 100

/** What agents may know of the workflows that they may run: how they go, not what other agents are asked. */
export function definitionTools(definitions: () => Promise<WorkflowDefinitions>): readonly AnyTool[] {
  return [listTool(definitions), describeTool(definitions)]
}

function listTool(definitions: () => Promise<WorkflowDefinitions>): AnyTool {
  return defineTool({
    name: 'workflow_list',
    risk: 'read',
    description: `The workflows that you may run, ${MAX_LISTED} at most. Answers JSON.`,
    input: v.object({}),
    async run(_input, { agentId }) {
      const rows = await (await definitions()).listFor(agentId)
      const shown = rows.slice(0, MAX_LISTED)
      return JSON.stringify({
        total: rows.length,
        workflows: shown.map(({ id, name, description, step_count: steps }) => ({ id, name, description, steps })),
      })
    },
  })
}

function describeTool(definitions: () => Promise<WorkflowDefinitions>): AnyTool {
  return defineTool({
    name: 'workflow_describe',
    risk: 'read',
    description: 'The steps of a workflow that you may run: who does what in which mode. Answers JSON.',
    input: v.object({
      workflow_id: v.pipe(v.string(), v.minLength(1), v.maxLength(128), v.description('Id or name of the workflow')),
    }),
    async run({ workflow_id: idOrName }, { agentId }) {
      const { id, name, description, steps } = await (await definitions()).resolveFor(agentId, idOrName)
      return JSON.stringify({
        id,
        name,
        description,
        steps: steps.map((step) => ({
          name: step.name,
          type: step.type,
          mode: step.mode,
          agent: step.agent,
          output_var: step.outputVar,
        })),
      })
    },
  })
}
