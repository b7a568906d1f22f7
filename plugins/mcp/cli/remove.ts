import * as v from 'valibot'
import { callDaemon, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { pathOf, serverArgs } from './server.ts'

export default defineCommand({
  description: 'Remove an MCP server that was added, with its program and its secrets.',
  args: serverArgs,
  examples: [['svc mcp remove docs', 'agents can no longer use it']],
  async run(args) {
    const Removed = v.looseObject({ name: v.string() })
    const answer = await callDaemon(await connect(args), (client) => client.call('DELETE', pathOf(args.name), Removed))
    if (args.json) printJson(answer)
    else print(`${answer.name} is removed.`)
    return exits.ok
  },
})
