import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'

const Deleted = v.looseObject({ status: v.string(), memory_id: v.string() })

export default defineCommand({
  description: 'Delete a memory for good, with its history. Its id and who deleted it stay.',
  args: { id: { type: 'positional', required: true, description: 'Id of the memory' }, ...clientArgs },
  examples: [['svc memory forget 0190c9a4-6c1e-7f3a-9b7e-2f6f8d7a1c11', 'one memory']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('DELETE', `/api/memory/items/${encodeURIComponent(args.id)}`, Deleted),
    )
    if (args.json) printJson(answer)
    else print(`Memory ${answer.memory_id} is forgotten.`)
    return exits.ok
  },
})
