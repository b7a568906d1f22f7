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
  shorten,
} from 'svc/cli'
import { addressOf, path, Server, shownState, usableTools } from './server.ts'

export default defineCommand({
  description: 'List the MCP servers whose tools agents can use.',
  args: clientArgs,
  examples: [
    ['svc mcp list', 'with their state'],
    ["svc mcp list --json | jq -r '.servers[].name'", 'names for a script'],
  ],
  async run(args) {
    const List = v.looseObject({ servers: v.array(Server) })
    const answer = await callDaemon(await connect(args), (client) => client.call('GET', path, List))
    if (args.json) printJson(answer)
    else if (answer.servers.length === 0) print('There are no MCP servers.')
    else
      print(
        renderTable(
          ['NAME', 'STATE', 'TOOLS', 'FROM', 'RUNS'],
          answer.servers.map((server) => [
            server.name,
            shownState(server),
            String(usableTools(server)),
            escapeControls(server.origin),
            shorten(escapeControls(addressOf(server)), 60),
          ]),
        ),
      )
    return exits.ok
  },
})
