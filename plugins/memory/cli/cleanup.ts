import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'

const Cleaned = v.looseObject({ deleted_count: v.number() })

export default defineCommand({
  description: 'Forget what has expired now, without waiting for the next sweep.',
  args: { ...clientArgs },
  examples: [['svc memory cleanup', 'says how many are gone']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('POST', '/api/memory/cleanup', Cleaned),
    )
    if (args.json) printJson(answer)
    else print(`${answer.deleted_count} memories had expired and are deleted.`)
    return exits.ok
  },
})
