import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { handArgs } from './client.ts'

const Removed = v.looseObject({ status: v.string(), hand_id: v.string() })

export default defineCommand({
  description: 'Remove an installed hand. One that comes with svc stays, and one with an instance: stop that first.',
  args: { ...handArgs, ...clientArgs },
  examples: [['svc hand remove tides', 'from every daemon on the database']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('DELETE', `/api/hands/${encodeURIComponent(args.hand)}`, Removed),
    )
    if (args.json) printJson(answer)
    else print(`The hand "${answer.hand_id}" is removed`)
    return exits.ok
  },
})
