import * as v from 'valibot'
import {
  callDaemon,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderFacts,
  renderTable,
  shorten,
} from 'svc/cli'
import { requireWorkflow, workflowArgs } from './client.ts'

const Step = v.looseObject({
  name: v.string(),
  type: v.string(),
  agent_id: v.optional(v.string()),
  agent_name: v.optional(v.string()),
  prompt: v.string(),
  mode: v.string(),
  output_var: v.optional(v.string()),
})
const View = v.looseObject({
  id: v.string(),
  name: v.string(),
  description: v.string(),
  steps: v.array(Step),
  revision: v.number(),
  file: v.nullable(v.string()),
  created_at: v.string(),
})

export default defineCommand({
  description: 'Show the steps of a workflow.',
  args: workflowArgs,
  examples: [
    ['svc workflow show article', 'by name'],
    ['svc workflow show article --json', 'the whole definition, as it can be created again'],
  ],
  async run(args) {
    const view = await callDaemon(await connect(args), async (client) =>
      client.call('GET', `/api/workflows/${(await requireWorkflow(client, args.workflow)).id}`, View),
    )
    if (args.json) printJson(view)
    else {
      print(
        renderFacts([
          ['name', escapeControls(view.name)],
          ['id', view.id],
          ['description', escapeControls(view.description)],
          ['file', view.file ?? ''],
          ['revision', String(view.revision)],
          ['created', view.created_at],
        ]),
      )
      print('')
      print(
        renderTable(
          ['STEP', 'MODE', 'BY', 'VARIABLE', 'PROMPT'],
          view.steps.map((step) => [
            escapeControls(step.name),
            step.mode,
            step.type === 'agent' ? (step.agent_name ?? step.agent_id ?? '') : step.type,
            step.output_var ?? '',
            step.type === 'agent' ? shorten(escapeControls(step.prompt), 60) : '',
          ]),
        ),
      )
    }
    return exits.ok
  },
})
