import { callDaemon, commandLine, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { path, Server, usableTools } from './server.ts'
import { readSpec, specArgs, START_MS } from './spec.ts'

export default defineCommand({
  description:
    'Add an MCP server: a program of this machine, or an address. It is connected before it is added. A program is confined ' +
    'to a folder of its own and the hosts of --network; the configuration file can give one more.',
  args: specArgs,
  examples: [
    ['svc mcp add time --command mcp-server-time', 'a program'],
    ['pass show gitlab | svc mcp add gitlab --network gitlab.com --secret TOKEN --command mcp-gitlab', 'with a secret'],
    ['svc mcp add docs --address https://example.com/mcp', 'over HTTP'],
    ['svc mcp add crm --address https://example.com/mcp --client-id svc --client-secret', 'a client of the vendor'],
  ],
  async run(args, words) {
    const connection = await connect(args)
    const body = await readSpec(args, words)
    const server = await callDaemon(connection, (client) =>
      client.call('POST', path, Server, { body, timeoutMs: START_MS }),
    )
    if (args.json) printJson(server)
    else if (server.state === 'login_required')
      print(`${server.name} is added and wants a login: ${commandLine(`mcp login ${server.name}`)}`)
    else print(`${server.name} is added. Agents can use ${usableTools(server)} tools of it.`)
    return exits.ok
  },
})
