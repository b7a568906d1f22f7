import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'

const Removed = v.looseObject({ status: v.string() })

export default defineCommand({
  description: 'Remove a binding by its number in the list. The numbers after it move up.',
  args: {
    number: { type: 'positional', required: true, description: 'Number in the list, from 0' },
    ...clientArgs,
  },
  examples: [['svc channels bindings remove 0', 'the first one']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('DELETE', `/api/bindings/${encodeURIComponent(args.number)}`, Removed),
    )
    if (args.json) printJson(answer)
    else print(`Binding ${args.number} is removed.`)
    return exits.ok
  },
})
