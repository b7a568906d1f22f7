import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'

const Decayed = v.looseObject({ decay_rate: v.number() })

export default defineCommand({
  description: 'Let the strength of memories fade now, by the time since their last use.',
  args: { ...clientArgs },
  examples: [['svc memory decay', 'with the decay_rate of the configuration']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) => client.call('POST', '/api/memory/decay', Decayed))
    if (args.json) printJson(answer)
    else print(`Memories have faded by ${answer.decay_rate} per day without use.`)
    return exits.ok
  },
})
