import { callDaemon, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { pathOf, Server, serverArgs, usableTools } from './server.ts'
import { START_MS } from './spec.ts'

export default defineCommand({
  description: 'Start an MCP server anew, also one that was given up.',
  args: serverArgs,
  examples: [['svc mcp restart files', 'calls that run fail']],
  async run(args) {
    const server = await callDaemon(await connect(args), (client) =>
      client.call('POST', `${pathOf(args.name)}/restart`, Server, { timeoutMs: START_MS }),
    )
    if (args.json) printJson(server)
    else print(`${server.name} is ${server.state} and has ${usableTools(server)} tools.`)
    return exits.ok
  },
})
