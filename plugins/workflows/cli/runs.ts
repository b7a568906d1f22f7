import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderTable,
} from 'svc/cli'
import { RunItem, requireWorkflow } from './client.ts'

export default defineCommand({
  description: 'List the runs of a workflow, or of all, the newest first.',
  args: {
    workflow: { type: 'positional', required: false, description: 'Name or id of the workflow' },
    ...clientArgs,
  },
  examples: [
    ['svc workflow runs', 'of all workflows'],
    ['svc workflow runs article', 'of one'],
  ],
  async run(args) {
    const runs = await callDaemon(await connect(args), async (client) => {
      const path = args.workflow === undefined ? '' : `/${(await requireWorkflow(client, args.workflow)).id}`
      return client.call('GET', `/api/workflows${path}/runs?limit=50`, v.array(RunItem))
    })
    if (args.json) printJson(runs)
    else if (runs.length === 0) print('No workflow has run yet.')
    else
      print(
        renderTable(
          ['RUN', 'WORKFLOW', 'STATE', 'STEPS', 'BEGAN', 'CAUSE'],
          runs.map((run) => [
            run.id,
            escapeControls(run.workflow_name),
            run.state,
            String(run.steps_completed),
            run.started_at ?? '',
            escapeControls(run.cause),
          ]),
        ),
      )
    return exits.ok
  },
})
