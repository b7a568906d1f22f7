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
  renderTime,
} from 'svc/cli'
import { listStandingApprovals } from './standing.ts'

export default defineCommand({
  description: 'List the standing approvals: what agents may do without a new approval until their session ends.',
  args: clientArgs,
  examples: [
    ['svc approval grants', 'the standing approvals in force'],
    ["svc approval grants --json | jq -r '.grants[].id'", 'ids for a script'],
  ],
  async run(args) {
    const answer = await callDaemon(await connect(args), listStandingApprovals)
    if (args.json) printJson(answer)
    else if (answer.grants.length === 0) print('There are no standing approvals: every action needs its own.')
    else
      print(
        renderTable(
          ['AGENT', 'TOOL', 'COVERS', 'USED', 'GIVEN', 'BY', 'ID'],
          answer.grants.map((each) => [
            each.agent_name,
            each.tool_name,
            escapeControls(each.covers),
            String(each.uses),
            renderTime(each.granted_at),
            each.granted_by,
            each.id,
          ]),
        ),
      )
    return exits.ok
  },
})
