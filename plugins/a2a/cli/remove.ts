import * as v from 'valibot'
import { callDaemon, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { agentArgs, agentPath } from './external.ts'

export default defineCommand({
  description: 'Forget an agent on another system, with its secret.',
  args: agentArgs,
  examples: [['svc a2a remove translator', 'by its name']],
  async run(args) {
    const removed = await callDaemon(await connect(args), (client) =>
      client.call('DELETE', agentPath(args.agent), v.looseObject({ status: v.string() })),
    )
    if (args.json) printJson(removed)
    else print(`${args.agent} is forgotten.`)
    return exits.ok
  },
})
