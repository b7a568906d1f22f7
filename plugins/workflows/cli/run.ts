import * as v from 'valibot'
import {
  callDaemon,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  Failure,
  note,
  print,
  printJson,
  renderTable,
} from 'svc/cli'
import type { DaemonClient } from 'svc/cli'
import { requireWorkflow, workflowArgs } from './client.ts'
import { runEvents } from './watch.ts'

const Begun = v.looseObject({ run_id: v.string() })
const Ended = v.looseObject({ state: v.string(), output: v.nullable(v.string()), error: v.nullable(v.string()) })
const Rehearsal = v.looseObject({
  steps: v.array(
    v.looseObject({
      name: v.string(),
      type: v.string(),
      mode: v.string(),
      text: v.string(),
      model: v.nullable(v.string()),
      agent_name: v.nullable(v.string()),
      most_calls: v.number(),
      estimated_cost_usd: v.nullable(v.number()),
      needs_approval: v.boolean(),
      may_ask_for: v.array(v.string()),
    }),
  ),
  estimated_cost_usd: v.nullable(v.number()),
  problems: v.array(v.string()),
})

export default defineCommand({
  description: 'Run a workflow and print its output; --dry-run says what it would do.',
  args: {
    ...workflowArgs,
    input: { type: 'string', valueHint: 'text', description: 'What the first step works on' },
    'dry-run': { type: 'boolean', description: 'Show steps, models, cost and approvals; run nothing' },
  },
  examples: [
    ['svc workflow run article --input "cats"', 'waits for the output'],
    ['svc workflow run article --dry-run', 'what it would do and cost at most'],
  ],
  async run(args) {
    const input = args.input ?? ''
    return callDaemon(await connect(args), async (client) => {
      const { id } = await requireWorkflow(client, args.workflow)
      return args['dry-run'] ? rehearse(client, id, input, args.json) : run(client, id, input, args.json)
    })
  },
})

/** Says what it waits for meanwhile. The run goes on when the command is ended. */
async function run(client: DaemonClient, id: string, input: string, json: boolean | undefined): Promise<number> {
  const begun = await client.call('POST', `/api/workflows/${id}/run?wait=false`, Begun, { body: { input } })
  const path = `/api/workflows/runs/${begun.run_id}`
  note(`run ${begun.run_id} began`)
  const told = new Set<string>()
  for await (const event of runEvents(client, begun.run_id))
    if (event.type === 'step' && event.step.state === 'waiting' && !told.has(event.step.step_name)) {
      told.add(event.step.step_name)
      const forWhom = event.step.type === 'approval' ? ` for a person: ${commandLine('approval list')}` : ''
      note(`step "${escapeControls(event.step.step_name)}" waits${forWhom}`)
    }
  const { state, output, error } = await client.call('GET', path, Ended)
  if (json) printJson({ run_id: begun.run_id, status: state, output, error })
  if (state !== 'Completed')
    throw new Failure(
      exits.failed,
      `run ${begun.run_id} is ${state}${error === null ? '' : `: ${escapeControls(error)}`}`,
      `to run it again: ${commandLine(`workflow rerun ${begun.run_id}`)}`,
    )
  if (!json) print(escapeControls(output ?? '', true))
  return exits.ok
}

async function rehearse(client: DaemonClient, id: string, input: string, json: boolean | undefined): Promise<number> {
  const rehearsal = await client.call('POST', `/api/workflows/${id}/dry-run`, Rehearsal, { body: { input } })
  if (json) {
    printJson(rehearsal)
    return exits.ok
  }
  print(
    renderTable(
      ['STEP', 'MODE', 'DOES', 'MODEL', 'CALLS', 'COST', 'APPROVAL'],
      rehearsal.steps.map((step) => [
        escapeControls(step.name),
        step.mode,
        escapeControls(step.text),
        step.model ?? '',
        String(step.most_calls),
        step.type === 'workflow' || (step.type === 'agent' && step.agent_name !== null)
          ? dollars(step.estimated_cost_usd)
          : '',
        step.needs_approval ? 'yes' : step.may_ask_for.length > 0 ? `for ${step.may_ask_for.join(', ')}` : '',
      ]),
    ),
  )
  print(`estimated cost: ${dollars(rehearsal.estimated_cost_usd)}, with answers as long as they may be`)
  for (const problem of rehearsal.problems) note(`svc: warning: ${escapeControls(problem)}`)
  return rehearsal.problems.length === 0 ? exits.ok : exits.failed
}
const dollars = (usd: number | null): string => (usd === null ? 'unknown' : `$${usd.toFixed(4)}`)
