import * as v from 'valibot'
import { callDaemon, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { integrationArgs, pathOf } from './client.ts'

export default defineCommand({
  description: 'Remove an integration with its secrets, its program and its tools.',
  args: integrationArgs,
  examples: [['svc integration remove github', 'agents can no longer use it']],
  async run(args) {
    const Removed = v.looseObject({ id: v.string(), status: v.string() })
    const answer = await callDaemon(await connect(args), (client) => client.call('DELETE', pathOf(args.id), Removed))
    if (args.json) printJson(answer)
    else print(`${answer.id} is removed with its secrets.`)
    return exits.ok
  },
})
