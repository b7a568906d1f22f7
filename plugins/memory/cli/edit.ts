import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'

const Changed = v.looseObject({ updated: v.boolean(), memory_id: v.string() })

export default defineCommand({
  description: 'Change what a memory says. What it said before stays in its history.',
  args: {
    id: { type: 'positional', required: true, description: 'Id of the memory' },
    text: { type: 'positional', required: true, description: 'What is known now' },
    ...clientArgs,
  },
  examples: [['svc memory edit 0190c9a4-6c1e-7f3a-9b7e-2f6f8d7a1c11 "Ann lives in Linz"', 'she has moved']],
  async run(args) {
    const path = `/api/memory/items/${encodeURIComponent(args.id)}`
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('PUT', path, Changed, { body: { content: args.text } }),
    )
    if (args.json) printJson(answer)
    else print(`Memory ${answer.memory_id} is changed.`)
    return exits.ok
  },
})
