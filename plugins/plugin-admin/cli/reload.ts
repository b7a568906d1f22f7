import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'

export default defineCommand({
  description: 'Load the code of a plugin anew while the daemon serves. When the new code fails, the old one goes on.',
  args: { plugin: { type: 'positional', required: true, description: 'Name of the plugin' }, ...clientArgs },
  examples: [['svc plugin reload hello', 'after editing it']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) =>
      client.call(
        'POST',
        `/api/plugins/${encodeURIComponent(args.plugin)}/reload`,
        v.looseObject({ status: v.string() }),
        { timeoutMs: 120_000 },
      ),
    )
    if (args.json) printJson(answer)
    else print(`plugin "${args.plugin}" ${answer.status}`)
    return exits.ok
  },
})
