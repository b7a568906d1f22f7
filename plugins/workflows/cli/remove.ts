import * as v from 'valibot'
import { callDaemon, connect, defineCommand, escapeControls, exits, print, printJson } from 'svc/cli'
import { requireWorkflow, workflowArgs } from './client.ts'

export default defineCommand({
  description: 'Remove a workflow. Runs that began go on.',
  args: workflowArgs,
  examples: [['svc workflow remove article', 'by name or id']],
  async run(args) {
    const { workflow, answer } = await callDaemon(await connect(args), async (client) => {
      const found = await requireWorkflow(client, args.workflow)
      const removed = await client.call('DELETE', `/api/workflows/${found.id}`, v.looseObject({ status: v.string() }))
      return { workflow: found, answer: removed }
    })
    if (args.json) printJson(answer)
    else print(`workflow "${escapeControls(workflow.name)}" was removed`)
    return exits.ok
  },
})
