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
import { RunItem, requireWorkflow, STATES } from './client.ts'

export default defineCommand({
  description: 'List the runs of a workflow, or of all, the newest first.',
  args: {
    workflow: { type: 'positional', required: false, description: 'Name or id of the workflow' },
    state: { type: 'string', valueHint: 'state', description: `Only runs that are ${STATES.join(', ')}` },
    limit: { type: 'string', valueHint: 'count', description: 'How many; 50 by default' },
    offset: { type: 'string', valueHint: 'count', description: 'How many of the newest are left out' },
    ...clientArgs,
  },
  examples: [
    ['svc workflow runs', 'of all workflows'],
    ['svc workflow runs article --state Failed', 'of one, those that failed'],
    ['svc workflow runs --limit 20 --offset 20', 'the second page'],
  ],
  async run(args) {
    const runs = await callDaemon(await connect(args), async (client) => {
      const path = args.workflow === undefined ? '' : `/${(await requireWorkflow(client, args.workflow)).id}`
      const { state, limit = '50', offset = '0' } = args
      const query = new URLSearchParams({ limit, offset, ...(state !== undefined && { state }) })
      return client.call('GET', `/api/workflows${path}/runs?${query}`, v.array(RunItem))
    })
    if (args.json) printJson(runs)
    else if (runs.length === 0) print('There are no such runs.')
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
