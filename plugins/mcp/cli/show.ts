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
import { addressOf, pathOf, Server, serverArgs, shownState } from './server.ts'

export default defineCommand({
  description: 'Show an MCP server with its state and its tools.',
  args: serverArgs,
  examples: [['svc mcp show files', 'which of its tools agents can use, and why not']],
  async run(args) {
    const server = await callDaemon(await connect(args), (client) => client.call('GET', pathOf(args.name), Server))
    if (args.json) {
      printJson(server)
      return exits.ok
    }
    const facts: readonly (readonly [string, string])[] = [
      ['state', shownState(server)],
      ['problem', server.error ?? ''],
      [server.url === null ? 'program' : 'address', addressOf(server)],
      ['runs', server.url === null ? server.trust : ''],
      ['network', server.network.join(', ')],
      ['variables', server.env.join(', ')],
      ['headers', server.headers.join(', ')],
      ['from', server.origin],
      ['revision', server.protocol_version ?? ''],
      ['calls', `${server.calls}, ${server.failed_calls} failed`],
      ['restarts', String(server.restarts)],
    ]
    print(renderFacts(facts.filter(([, value]) => value !== '').map(([name, value]) => [name, escapeControls(value)])))
    if (server.tools.length > 0)
      print(
        renderTable(
          ['TOOL', 'RISK', 'USABLE', 'DESCRIPTION'],
          server.tools.map(({ name, risk, usable, reason, description }) => [
            escapeControls(name),
            risk,
            usable ? 'yes' : 'no',
            shorten(escapeControls(usable ? description : (reason ?? description)), 80),
          ]),
        ),
      )
    return exits.ok
  },
})
