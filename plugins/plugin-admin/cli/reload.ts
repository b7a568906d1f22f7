import * as v from 'valibot'
import { callDaemon, clientArgs, commandLine, connect, defineCommand, exits, print, printJson } from 'svc/cli'

import { findOthers, namesOf } from './followers.ts'

export default defineCommand({
  description:
    'Load the code of a plugin anew while the daemon serves. When the new code fails, the old one goes on. Other ' +
    'daemons on the database keep what they have.',
  args: { plugin: { type: 'positional', required: true, description: 'Name of the plugin' }, ...clientArgs },
  examples: [['svc plugin reload hello', 'after editing it']],
  async run(args) {
    const connection = await connect(args)
    const others = await findOthers(connection, args.plugin)
    const answer = await callDaemon(connection, (client) =>
      client.call(
        'POST',
        `/api/plugins/${encodeURIComponent(args.plugin)}/reload`,
        v.looseObject({ status: v.string() }),
        { timeoutMs: 120_000 },
      ),
    )
    if (args.json) printJson(answer)
    else print(`plugin "${args.plugin}" ${answer.status}`)
    if (!args.json && others.length > 0)
      print(
        `In this home only: ${namesOf(others)} keep the code that they have (${commandLine('plugin add <source>')} is for all).`,
      )
    return exits.ok
  },
})
