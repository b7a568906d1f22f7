import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderTable,
} from 'svc/cli'
import { listIntegrations } from './client.ts'

export default defineCommand({
  description: 'List the integrations that were added, with their state.',
  args: clientArgs,
  examples: [
    ['svc integration list', 'what agents are connected to'],
    ["svc integration list --json | jq -r '.installed[].id'", 'ids for a script'],
  ],
  async run(args) {
    const answer = await callDaemon(await connect(args), listIntegrations)
    const { installed } = answer
    if (args.json) printJson(answer)
    else if (installed.length === 0)
      print(`There are no integrations. ${commandLine('integration available')} lists what can be added.`)
    else
      print(
        renderTable(
          ['ID', 'NAME', 'STATE', 'TOOLS', 'PROBLEM'],
          installed.map(({ id, name, status, tool_count: tools, error }) => [
            id,
            escapeControls(name),
            status,
            String(tools),
            escapeControls(error ?? ''),
          ]),
        ),
      )
    return exits.ok
  },
})
