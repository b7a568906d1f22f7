import * as v from 'valibot'
import { callDaemon, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { pathOf, serverArgs } from './server.ts'

export default defineCommand({
  description: 'Forget the login at an MCP server.',
  args: serverArgs,
  examples: [['svc mcp logout docs', 'its tokens are deleted from the vault']],
  async run(args) {
    const Logout = v.looseObject({ logged_out: v.boolean() })
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('POST', `${pathOf(args.name)}/logout`, Logout),
    )
    if (args.json) printJson(answer)
    else print(answer.logged_out ? `Logged out of ${args.name}.` : `There was no login at ${args.name}.`)
    return exits.ok
  },
})
